import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { sellByTwoReplicas } from '../../examples/two-replicas.js';
import { installed, type PackedProject } from '../package/packed.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { copyNestShop, startNestShop } from './nest-shop.js';

const shop = new Shop();

describeWithShop('a project of Nest 12, which is ESM, installed from the registry and the tarball', () => {
  let project: PackedProject;
  const env = { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url ?? '' };

  beforeAll(async () => {
    project = await installed(new URL('fixtures/nest12/', import.meta.url));
    copyNestShop(project);
  }, 300_000);
  afterAll(() => project.remove());

  test('compiles with declarations, sells over HTTP, answers 409 while it is busy, and ends by itself', async () => {
    expect(await project.run(project.path('node_modules/typescript/bin/tsc'))).toBe('');
    expect(project.read('dist/shop/main.js')).toContain("from '@nestjs/core'");
    const { id } = await shop.product(10);
    const said: unknown = JSON.parse(await project.runWith(env, project.path('dist/main.js'), String(id)));
    expect(said).toEqual({ left: [5, 6, 7, 8, 9], busy: 409, code: 'LOCK_TIMEOUT', health: 200 });
    const row = await shop.row(id);
    expect(row?.quantity).toBe(5);
    expect(row?.fence).toBeGreaterThan(0n);
  }, 120_000);

  test('sells under locks in vitest, which imports the package, and ends by itself', async () => {
    const { id } = await shop.product(10);
    const vitest = project.path('node_modules/vitest/vitest.mjs');
    const run = await project.runWith({ ...env, STOCK_ID: String(id) }, vitest, 'run', '--reporter=json');
    expect(JSON.parse(run)).toMatchObject({ numPassedTests: 2, numFailedTests: 0, success: true });
    expect((await shop.row(id))?.quantity).toBe(5);
  }, 120_000);

  test('sells by two replicas under load, of which one is frozen and one killed, and ends within 2 s', async () => {
    await sellByTwoReplicas(shop, (name) => startNestShop(project, shop, name));
  }, 200_000);
});
