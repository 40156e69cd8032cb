import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import { literalOf } from './literal.js';

const SOURCE = fileURLToPath(new URL('../../src/addons/testing/servers/reaper.ts', import.meta.url));

/** The program of reaper.ts as a text in a module: CommonJS and bundles have no file of it that could be started. */
export function reaperModule(): string {
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
  return `// DO NOT EDIT: made from reaper.ts by \`npm run generate\`.
export const REAPER = ${literalOf(outputFiles[0]?.text.trim() ?? '')};
`;
}
