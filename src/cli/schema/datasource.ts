import { masked, unescaped } from './mask.js';

/** The used part of the datasource block. */
export interface Datasource {
  readonly file: string;
  readonly provider: string | undefined;
  /** The Postgres schemas that Prisma treats as its own. */
  readonly schemas: readonly string[];
}

const BLOCK = /(?<![\p{L}\p{N}_])datasource[^\S\n]+[^\s{}]+[^\S\n]*\{[^}]*\}/u;

/** The datasource of a schema; `undefined` if no file has one. */
export function readDatasource(schema: ReadonlyMap<string, string>): Datasource | undefined {
  for (const [file, text] of schema) {
    const block = BLOCK.exec(masked(text));
    if (block === null) continue;
    const [provider] = stringsOf(text, block, /^\s*provider\s*=[^\n]*/m);
    return { file, provider, schemas: stringsOf(text, block, /^\s*schemas\s*=\s*\[[^\]]*\]/m) };
  }
  return undefined;
}

/** The strings of one setting, read from the text: in the block they are blanked. */
function stringsOf(text: string, block: RegExpExecArray, setting: RegExp): string[] {
  const found = setting.exec(block[0]);
  if (found === null) return [];
  const from = block.index + found.index;
  return [...found[0].matchAll(/"( *)"/g)].map(({ index, 1: blank = '' }) =>
    unescaped(text.slice(from + index + 1, from + index + 1 + blank.length)),
  );
}
