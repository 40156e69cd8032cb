import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { sellByTwoReplicas } from '../../examples/two-replicas.js';
import { installed, type PackedProject } from '../package/packed.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { copyNestShop, startNestShop } from './nest-shop.js';

const shop = new Shop();

describeWithShop('a project of Nest 11, installed from the registry and the tarball', () => {
  let project: PackedProject;

  beforeAll(async () => {
    project = await installed(new URL('fixtures/nest/', import.meta.url));
    copyNestShop(project);
  }, 300_000);
  afterAll(() => project.remove());

  test('compiles as Nest sets it up, with declarations, to CommonJS', async () => {
    expect(await project.run(project.path('node_modules/typescript/bin/tsc'))).toBe('');
    expect(project.read('dist/shop/main.js')).toContain('require("@nestjs/core")');
  });

  test('sells under locks in Jest, which requires the package, and ends by itself', async () => {
    const { id } = await shop.product(10);
    const env = { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url ?? '', STOCK_ID: String(id) };
    const jest = project.path('node_modules/jest/bin/jest.js');
    const said = JSON.parse(await project.runWith(env, jest, '--json')) as Record<string, unknown>;
    expect(said).toMatchObject({ numPassedTests: 2, numFailedTests: 0, success: true });
    const row = await shop.row(id);
    expect(row?.quantity).toBe(5);
    expect(row?.fence).toBeGreaterThan(0n);
  }, 120_000);

  test('sells by two replicas under load, of which one is frozen and one killed, and ends within 2 s', async () => {
    await sellByTwoReplicas(shop, (name) => startNestShop(project, shop, name));
  }, 200_000);
});
