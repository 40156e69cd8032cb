import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const FIXTURE = fileURLToPath(new URL('fixtures/types.ts', import.meta.url));
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

// With standard decorators `npm run check:types` compiles the fixture, as any other file.
test.each(['typescript', 'typescript-7'])(
  'a key that does not fit its method does not compile as a legacy decorator either, by %s',
  async (version) => {
    const tsc = [`node_modules/${version}/bin/tsc`, ...(version === 'typescript-7' ? ['--ignoreConfig'] : [])];
    const strict = ['--noEmit', '--strict', '--skipLibCheck', '--exactOptionalPropertyTypes', '--types', 'node'];
    const modern = ['--module', 'nodenext', '--target', 'ES2022', '--lib', 'ES2024,ESNext.Disposable'];
    const compile = [...tsc, ...strict, ...modern, '--experimentalDecorators', FIXTURE];
    const { stdout } = await promisify(execFile)(process.execPath, compile, { cwd: ROOT }).catch((error) => error);
    expect(stdout).toBe('');
  },
  120_000,
);
