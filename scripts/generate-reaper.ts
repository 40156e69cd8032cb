// Writes src/testing/servers/reaper.generated.ts, the program of reaper.ts as a text: CommonJS and bundles have no file of it
// that could be started. With --check, only says whether it is current.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const SOURCE = fileURLToPath(new URL('../src/testing/servers/reaper.ts', import.meta.url));
const OUT = new URL('../src/testing/servers/reaper.generated.ts', import.meta.url);

const { outputFiles } = buildSync({
  entryPoints: [SOURCE],
  bundle: true,
  write: false,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  legalComments: 'none',
  minifyWhitespace: true,
});
const text = outputFiles[0]?.text.trim() ?? '';
const literal = text.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${');
const generated = `// DO NOT EDIT: made from reaper.ts by \`npm run generate\`.
export const REAPER = \`${literal}\`;
`;

if (process.argv.includes('--check')) {
  if (readFileSync(OUT, 'utf8') !== generated) {
    console.error('src/testing/servers/reaper.generated.ts is not what reaper.ts says: run `npm run generate`.');
    process.exit(1);
  }
} else {
  writeFileSync(OUT, generated);
}
