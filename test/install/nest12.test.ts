import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { installed, type PackedProject } from '../package/packed.js';
import { describeWithShop, Shop } from '../support/shop.js';

const shop = new Shop();

describeWithShop('a project of Nest 12, which is ESM, installed from the registry and the tarball', () => {
  let project: PackedProject;

  beforeAll(async () => {
    project = await installed(new URL('fixtures/nest12/', import.meta.url));
  }, 300_000);
  afterAll(() => project.remove());

  test('compiles with declarations, sells over HTTP, answers 409 while it is busy, and ends by itself', async () => {
    expect(await project.run(project.path('node_modules/typescript/bin/tsc'))).toBe('');
    const { id } = await shop.product(10);
    const env = { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url ?? '' };
    const said: unknown = JSON.parse(await project.runWith(env, project.path('dist/main.js'), String(id)));
    expect(said).toEqual({ left: [5, 6, 7, 8, 9], busy: 409, code: 'LOCK_TIMEOUT', health: 200 });
    const row = await shop.row(id);
    expect(row?.quantity).toBe(5);
    expect(row?.fence).toBeGreaterThan(0n);
  }, 120_000);
});
