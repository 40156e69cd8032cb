import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Packed } from './packed.js';

const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

/** Each subpath, and the peers that it cannot be imported without. */
const SUBPATHS: Record<string, readonly string[]> = {
  '.': ['@prisma/client', 'ioredis'],
  board: [],
  decorators: [],
  nest: ['@nestjs/common', '@nestjs/core', 'rxjs'],
  'nest-cls': [],
  otel: ['@opentelemetry/api'],
  testing: [],
  pg: [],
  kysely: [],
  drizzle: [],
};

let packed: Packed;
beforeAll(async () => {
  packed = await Packed.install();
});
afterAll(() => packed.remove());

describe.each(Object.entries(SUBPATHS))('the subpath %s', (subpath, peers) => {
  /** Outside of this repository, whose `node_modules` would lend what is missing. */
  const folder = mkdtempSync(join(tmpdir(), 'fenced-lock-subpath-'));

  beforeAll(() => {
    const modules = join(folder, 'node_modules');
    cpSync(packed.home, join(modules, 'prisma-extension-fenced-lock'), { recursive: true });
    for (const peer of peers) {
      mkdirSync(dirname(join(modules, peer)), { recursive: true });
      symlinkSync(join(MODULES, peer), join(modules, peer));
    }
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** What it exports, by the way in which it is loaded. */
  async function names(load: string): Promise<string> {
    const list = `Object.keys(m).filter((name) => !['default', 'module.exports'].includes(name)).sort().join()`;
    const code = `const m = ${load}; console.log(${list});`;
    const type = load.startsWith('await') ? 'module' : 'commonjs';
    const { stdout } = await promisify(execFile)(process.execPath, [`--input-type=${type}`, '-e', code], {
      cwd: folder,
    });
    return stdout.trim();
  }

  test('is loaded with its own peers alone, and alike as ESM and as CommonJS', async () => {
    const name = JSON.stringify(join('prisma-extension-fenced-lock', subpath));
    const esm = await names(`await import(${name})`);
    expect(esm).toMatch(/^\w+(,\w+)*$/);
    expect(await names(`require(${name})`)).toBe(esm);
  });
});
