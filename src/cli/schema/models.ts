import { Problem } from '../problem.js';
import { masked, unescaped } from './mask.js';

/** A field of a model. Offsets refer to the file; `end` is after the line break. */
export interface SchemaField {
  readonly name: string;
  readonly type: string;
  readonly modifier: '' | '?' | '[]';
  /** The rest of the line after the type, with comments and strings blanked. */
  readonly attributes: string;
  /** The column, if `@map` names one. */
  readonly map: string | undefined;
  readonly start: number;
  readonly end: number;
}

export interface SchemaModel {
  readonly kind: 'model' | 'view';
  readonly name: string;
  readonly file: string;
  /** The table, and its schema if `@@schema` names one. */
  readonly table: string;
  readonly schema: string | undefined;
  readonly fields: readonly SchemaField[];
  /** The block attributes, with comments and strings blanked. */
  readonly attributes: string;
}

/**
 * Prisma has names with letters of all languages, all kinds of space between them, and blocks that begin behind the end of
 * another one. A block must not be overlooked: its table would have no guard, and nobody would notice. So the name is
 * whatever stands there.
 */
const BLOCK = /(?<![\p{L}\p{N}_])(model|view)[^\S\n]+([^\s{}]+)[^\S\n]*\{/gu;
const FIELD = /^[^\S\n]*(\p{L}[\p{L}\p{N}_]*)[^\S\n]+(\p{L}[\p{L}\p{N}_]*(?:\("[^"\n]*"\))?)[^\S\n]*(\[\]|\?)?/u;

/** All models and views of a schema, in the order of the files. */
export function readModels(schema: ReadonlyMap<string, string>): SchemaModel[] {
  return [...schema].flatMap(([file, text]) => {
    const code = masked(text);
    return [...code.matchAll(BLOCK)].map((block) => {
      const body = block.index + block[0].length;
      const name = block[2] ?? '';
      const unread = () =>
        new Problem(`The ${block[1]} ${name} cannot be read: \`npx prisma validate\` says what is wrong.`);
      // Something stands behind the brace, in the same line.
      if (/^[^\S\n]*\S/.test(code.slice(body))) throw unread();
      const { fields, attributes, isClosed } = readBody(text, code, body);
      if (!isClosed) throw unread();
      return {
        kind: block[1] === 'view' ? 'view' : 'model',
        name,
        file,
        table: textIn(attributes, '@@', 'map') ?? name,
        schema: textIn(attributes, '@@', 'schema'),
        fields,
        attributes: attributes.map(({ code }) => code).join('\n'),
      } as const;
    });
  });
}

/** A part of the file: the original text, and the text with comments and strings blanked. */
interface Stretch {
  readonly text: string;
  readonly code: string;
}

interface Body {
  readonly fields: SchemaField[];
  readonly attributes: Stretch[];
  readonly isClosed: boolean;
}

function readBody(text: string, code: string, body: number): Body {
  const fields: SchemaField[] = [];
  const attributes: Stretch[] = [];
  let start = body;
  while (start < code.length) {
    const newline = code.indexOf('\n', start);
    const end = newline < 0 ? code.length : newline + 1;
    const stretch = { text: text.slice(start, end), code: code.slice(start, end) };
    if (/^\s*\}/.test(stretch.code)) return { fields, attributes, isClosed: true };
    if (/^\s*(model|view|enum|type|datasource|generator)\s+[^\s{}]+\s*\{/.test(stretch.code)) break;
    const field = readField(stretch, start, end);
    if (field !== undefined) fields.push(field);
    else if (/^\s*@@/.test(stretch.code)) attributes.push(stretch);
    start = end;
  }
  return { fields, attributes, isClosed: false };
}

function readField(stretch: Stretch, start: number, end: number): SchemaField | undefined {
  const match = FIELD.exec(stretch.code);
  if (match === null) return undefined;
  const [whole, name = '', type = '', modifier = ''] = match;
  const attributes = stretch.code.slice(whole.length);
  return {
    name,
    type,
    modifier: modifier === '?' || modifier === '[]' ? modifier : '',
    attributes,
    map: textIn([stretch], '@', 'map'),
    start,
    end,
  };
}

/** The string argument of an attribute such as `@map("…")`, which may have spaces between its parts. */
function textIn(stretches: readonly Stretch[], at: '@' | '@@', attribute: string): string | undefined {
  const call = new RegExp(`(?<![@.\\w])${at}\\s*${attribute}\\s*\\(\\s*(?:name\\s*:\\s*)?"`);
  for (const { text, code } of stretches) {
    const match = call.exec(code);
    if (match === null) continue;
    const from = match.index + match[0].length;
    return unescaped(text.slice(from, code.indexOf('"', from)));
  }
  return undefined;
}
