// Writes src/board/assets.generated.ts from src/board/page and from the migration. With --check, only says whether it is current.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname } from 'node:path';
import { packagedScript } from '../src/cli/migrations/packaged.js';

const PAGE = new URL('../src/board/page/', import.meta.url);
const OUT = new URL('../src/board/assets.generated.ts', import.meta.url);
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const assets = readdirSync(PAGE)
  .filter((file) => extname(file) in TYPES)
  .sort()
  .map((file) => {
    const text = readFileSync(new URL(file, PAGE), 'utf8');
    const literal = text.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${');
    return `  '${file}': {
    type: '${TYPES[extname(file)]}',
    text: \`${literal}\`,
  },
`;
  });

const { version } = await packagedScript();
const generated = `// DO NOT EDIT: made from src/board/page by \`npm run generate\`.

/** The files of the page. */
export const ASSETS: { readonly [file: string]: { readonly type: string; readonly text: string } | undefined } = {
  __proto__: null as never,
${assets.join('')}};

/** Of the database objects that this package brings. */
export const OBJECTS_VERSION = ${version};
`;

if (process.argv.includes('--check')) {
  if (readFileSync(OUT, 'utf8') !== generated) {
    console.error('src/board/assets.generated.ts is not what src/board/page says: run `npm run generate`.');
    process.exit(1);
  }
} else {
  writeFileSync(OUT, generated);
}
