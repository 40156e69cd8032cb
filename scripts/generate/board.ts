import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import ts from 'typescript';
import { packagedScript } from '../../src/cli/migrations/packaged.js';
import { literalOf } from './literal.js';

const PAGE = new URL('../../src/addons/board/page/', import.meta.url);
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** Without types, with the comments: what a browser shows can be read. */
const FOR_BROWSERS = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022, verbatimModuleSyntax: true };

/** The files of src/addons/board/page, and the version in the migration, as a module. */
export async function boardModule(): Promise<string> {
  const assets = readdirSync(PAGE)
    .filter((file) => extname(file) in TYPES)
    .sort()
    .map((file) => {
      const source = readFileSync(new URL(file, PAGE), 'utf8');
      const isScript = extname(file) === '.ts';
      const text = isScript ? ts.transpileModule(source, { compilerOptions: FOR_BROWSERS }).outputText : source;
      return `  '${file.replace(/\.ts$/, '.js')}': {
    type: '${TYPES[extname(file)]}',
    text: ${literalOf(text)},
  },
`;
    });
  const { version } = await packagedScript();
  return `// DO NOT EDIT: made from src/addons/board/page by \`npm run generate\`.

/** The files of the page. */
export const ASSETS: { readonly [file: string]: { readonly type: string; readonly text: string } | undefined } = {
  __proto__: null as never,
${assets.join('')}};

/** Of the database objects that this package brings. */
export const OBJECTS_VERSION = ${version};
`;
}
