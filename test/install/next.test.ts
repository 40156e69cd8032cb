import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { expectServed } from '../addons/board/served.js';
import { installed, type PackedProject } from '../package/packed.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { Worker } from '../support/worker.js';

const shop = new Shop();
const NEXT = 'node_modules/next/dist/bin/next';
const LONG = 120_000;

describeWithShop('a project of Next.js 16, installed from the registry and the tarball', () => {
  let project: PackedProject;

  beforeAll(async () => {
    project = await installed(new URL('fixtures/next/', import.meta.url));
    await project.runWith({ NEXT_TELEMETRY_DISABLED: '1' }, project.path(NEXT), 'build');
  }, 300_000);
  afterAll(() => project.remove());

  /** `next start` or `next dev`, until the suite has ended. */
  async function serve(command: string, keyPrefix: string) {
    const port = await freePort();
    const args = [project.path(NEXT), command, '--hostname', '127.0.0.1', '--port', String(port)];
    const { app } = inject('postgres');
    const { url } = inject('redis');
    const env = { DATABASE_URL: app, REDIS_URL: url, KEY_PREFIX: keyPrefix, NEXT_TELEMETRY_DISABLED: '1' };
    const server = new Worker(spawn(process.execPath, args, { cwd: project.folder, env: { ...process.env, ...env } }));
    shop.closeLater(() => server.stop());
    const origin = `http://127.0.0.1:${port}`;
    const answers = () =>
      fetch(`${origin}/admin/locks`).then(
        ({ ok }) => ok,
        () => false,
      );
    await eventually(`next ${command} answers`, answers, { within: LONG });
    return { server, origin };
  }

  test.each(['start', 'dev'])(
    'serves the board by a route handler, with `next %s`: page, files, events, a force release',
    async (command) => {
      const keyPrefix = `next-${randomUUID()}:`;
      const { server, origin } = await serve(command, keyPrefix);
      await expectServed(origin, '/admin/locks', shop.client({ keyPrefix }).prisma, keyPrefix);
      await server.stop();
    },
    LONG,
  );

  test('takes a lock in a route handler', async () => {
    const { id } = await shop.product(10);
    const { server, origin } = await serve('start', `next-${randomUUID()}:`);
    const sell = () => fetch(`${origin}/api/stock/${id}`, { method: 'POST' });
    const left = await Promise.all(
      Array.from({ length: 5 }, async () => ((await (await sell()).json()) as { left: number }).left),
    );
    expect(left.sort()).toEqual([5, 6, 7, 8, 9]);
    expect((await shop.row(id))?.fence).toBeGreaterThan(0n);
    await server.stop();
  }, 120_000);
});
