import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { installed, type PackedProject } from '../package/packed.js';
import { describeWithShop } from '../support/shop.js';

describeWithShop('a project that tests its locks, installed from the registry and the tarball', () => {
  let project: PackedProject;
  const env = () => ({ DATABASE_URL: inject('postgres').admin, REDIS_URL: inject('redis').url ?? '' });

  beforeAll(async () => {
    project = await installed(new URL('fixtures/testing/', import.meta.url));
  }, 300_000);
  afterAll(() => project.remove());

  test('in Jest, which requires the package: fakes with its fake timers, servers by its global setup', async () => {
    const jest = project.path('node_modules/jest/bin/jest.js');
    const said = JSON.parse(await project.runWith(env(), jest, '--json')) as Record<string, unknown>;
    expect(said).toMatchObject({ numPassedTests: 5, numFailedTests: 0, success: true });
  }, 120_000);

  test('in node:test, which imports it', async () => {
    const said = await project.runWith(env(), project.path('node.test.mjs'));
    expect(said).toMatch(/pass 2$/m);
    expect(said).toMatch(/fail 0$/m);
  }, 120_000);
});
