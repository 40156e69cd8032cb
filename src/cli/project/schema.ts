import type { Table } from '../migrations/identifiers.js';
import { Problem } from '../problem.js';

/** A field of a model. Offsets refer to the file; `end` is after the line break. */
export interface SchemaField {
  readonly name: string;
  /** Its type and attributes, with comments and strings blanked. */
  readonly declared: string;
  readonly column: string;
  readonly start: number;
  readonly end: number;
}

export interface SchemaModel {
  readonly name: string;
  readonly file: string;
  readonly table: Table;
  readonly fields: readonly SchemaField[];
  /** The block attributes, with comments and strings blanked. */
  readonly attributes: readonly string[];
}

/** The used part of the datasource block. */
export interface Datasource {
  readonly file: string;
  readonly provider: string | undefined;
  /** The Postgres schemas that Prisma treats as its own. */
  readonly schemas: readonly string[];
}

/**
 * Prisma has names with letters of all languages, all kinds of space between them, and blocks that begin behind the end of
 * another one. A block must not be overlooked: its table would have no guard, and nobody would notice. So the name is
 * whatever stands there.
 */
const MODEL = /(?<![\p{L}\p{N}_])model[^\S\n]+([^\s{}]+)[^\S\n]*\{/gu;
const DATASOURCE = /(?<![\p{L}\p{N}_])datasource[^\S\n]+[^\s{}]+[^\S\n]*\{[^}]*\}/u;
/** What is behind the brace of a model. */
const BODY = /[^\S\n]*\n((?:[^\n]*\n)*?)[^\S\n]*\}/y;
const BLOCK_WITHIN = /^\s*(model|view|enum|type|datasource|generator)\s+[^\s{}]+\s*\{/m;
const FIELD = /^[^\S\n]*(\p{L}[\p{L}\p{N}_]*)[^\S\n]+(\p{L}[^\r\n]*)/u;
const COMMENT_OR_STRING = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"/g;

/** All models of a schema, in the order of the files. */
export function readModels(schema: ReadonlyMap<string, string>): SchemaModel[] {
  return [...schema].flatMap(([file, text]) => {
    const code = masked(text);
    return [...code.matchAll(MODEL)].map(({ 0: head, 1: name = '', index }) => {
      BODY.lastIndex = index + head.length;
      const [whole = '', body] = BODY.exec(code) ?? [];
      if (body === undefined || BLOCK_WITHIN.test(body)) {
        throw new Problem(`The model ${name} cannot be read: \`npx prisma validate\` says what is wrong.`);
      }
      const start = index + head.length + whole.indexOf('\n') + 1;
      const lines = [...body.matchAll(/[^\n]*\n/g)].map((line) => ({ code: line[0], start: start + line.index }));
      const argument = (attribute: string) => stringsOf(text, body, start, call('@@', attribute))[0];
      return {
        name,
        file,
        table: { name: argument('map') ?? name, schema: argument('schema') },
        fields: lines.flatMap((line) => readField(text, line) ?? []),
        attributes: lines.map((line) => line.code.trim()).filter((line) => line.startsWith('@@')),
      };
    });
  });
}

function readField(text: string, { code, start }: { code: string; start: number }): SchemaField | undefined {
  const [, name, declared = ''] = FIELD.exec(code) ?? [];
  if (name === undefined) return undefined;
  const column = stringsOf(text, code, start, call('@', 'map'))[0] ?? name;
  return { name, declared: declared.trimEnd(), column, start, end: start + code.length };
}

/** The datasource of a schema; `undefined` if no file has one. */
export function readDatasource(schema: ReadonlyMap<string, string>): Datasource | undefined {
  for (const [file, text] of schema) {
    const block = DATASOURCE.exec(masked(text));
    if (block === null) continue;
    const setting = (pattern: RegExp) => stringsOf(text, block[0], block.index, pattern);
    const [provider] = setting(/^\s*provider\s*=[^\n]*/m);
    return { file, provider, schemas: setting(/^\s*schemas\s*=\s*\[[^\]]*\]/m) };
  }
  return undefined;
}

/** An attribute such as `@map("…")`, which may have spaces between its parts. */
const call = (at: '@' | '@@', attribute: string) => new RegExp(`(?<![@.\\w])${at}\\s*${attribute}\\s*\\([^)]*\\)`);

/** The strings where the pattern matches. They are read from the text, at its offset `from`: in the code they are blank. */
function stringsOf(text: string, code: string, from: number, pattern: RegExp): string[] {
  const found = pattern.exec(code);
  if (found === null) return [];
  return [...found[0].matchAll(/" *"/g)].map(({ 0: blank, index }) => {
    const start = from + found.index + index;
    return unescaped(text.slice(start, start + blank.length));
  });
}

/** What a string of the schema stands for. It has the escape sequences of JSON. */
function unescaped(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch (cause) {
    throw new Problem(`The string ${quoted} of the schema cannot be read: Prisma refuses it, too.`, { cause });
  }
}

/** The schema with comments and string contents replaced by blanks. All offsets stay valid, and a match is always code. */
function masked(text: string): string {
  return text.replace(COMMENT_OR_STRING, (part) => {
    const blank = part.replaceAll(/[^\r\n]/g, ' ');
    return part.startsWith('"') ? `"${blank.slice(1, -1)}"` : blank;
  });
}
