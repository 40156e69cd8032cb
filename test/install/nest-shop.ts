import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { inject } from 'vitest';
import type { Replica } from '../../examples/two-replicas.js';
import type { PackedProject } from '../package/packed.js';
import { freePort } from '../support/servers/index.js';
import type { Shop } from '../support/shop.js';
import { Worker } from '../support/worker.js';

const EXAMPLE = new URL('../../examples/nest/', import.meta.url);
const FILES = ['app.module.ts', 'main.ts', 'prisma.ts', 'stock.controller.ts', 'stock.service.ts'];

/** The imports of the example, and what its comment says to write instead. */
const IMPORTS: readonly (readonly [string, string])[] = [
  ["'../../src/index.js'", "'prisma-extension-fenced-lock'"],
  ["'../../src/addons/nest/index.js'", "'prisma-extension-fenced-lock/nest'"],
  ["'../../src/addons/board/index.js'", "'prisma-extension-fenced-lock/board'"],
  ["'../../test/generated/prisma/client.js'", "'../generated/client.js'"],
];

/** Copies the application of examples/nest into the project, as `src/shop`. */
export function copyNestShop(project: PackedProject): void {
  mkdirSync(project.path('src/shop'));
  for (const file of FILES) {
    let text = readFileSync(new URL(file, EXAMPLE), 'utf8');
    for (const [ours, theirs] of IMPORTS) text = text.replaceAll(ours, theirs);
    if (/'(\.\.\/){2}/.test(text)) throw new Error(`${file} imports what an application does not have`);
    writeFileSync(project.path('src/shop', file), text);
  }
}

/** Runs that application, as compiled. It dies with the suite. */
export async function startNestShop(project: PackedProject, shop: Shop, name: string): Promise<Replica> {
  const port = await freePort();
  const { PATH, HOME } = process.env;
  const servers = { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url };
  const child = spawn(process.execPath, [project.path('dist/shop/main.js')], {
    cwd: project.folder,
    env: { PATH, HOME, ...servers, PORT: String(port), NAME: name },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const worker = new Worker(child);
  shop.closeLater(() => worker.kill());
  await worker.next('listening', { within: 60_000 });
  return { worker, url: `http://127.0.0.1:${port}` };
}
