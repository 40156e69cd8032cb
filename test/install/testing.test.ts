import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { installed, type PackedProject } from '../package/packed.js';
import { describeWithShop } from '../support/shop.js';

const KINDS = ['sell', 'transfer', 'redeem', 'report'];
/** Of each runner: of the four kinds of locks on fakes, on servers, and with faults. */
const TESTS = 17;
/** Of Vitest and of Jest: those that put a fake in the place of a module. */
const REPLACING = 2;

describeWithShop('the example whose locks are tested, installed from the registry and the tarball', () => {
  let project: PackedProject;
  const env = () => ({ DATABASE_URL: inject('postgres').admin, REDIS_URL: inject('redis').url ?? '' });

  beforeAll(async () => {
    project = await installed(new URL('../../examples/testing/', import.meta.url));
  }, 300_000);
  afterAll(() => project?.remove());

  test('compiles', async () => {
    expect(await project.run(project.path('node_modules/typescript/bin/tsc'))).toBe('');
  }, 60_000);

  test('in Vitest, which imports the package, with its fake timers and its global setup', async () => {
    const vitest = project.path('node_modules/vitest/vitest.mjs');
    const said = JSON.parse(await project.runWith(env(), vitest, 'run', '--reporter=json')) as Record<string, unknown>;
    expect(said).toMatchObject({ numPassedTests: TESTS + REPLACING, numFailedTests: 0, success: true });
  }, 120_000);

  test('in Jest, which requires it, with its fake timers and its global setup', async () => {
    const jest = project.path('node_modules/jest/bin/jest.js');
    const said = JSON.parse(await project.runWith(env(), jest, '--json')) as Record<string, unknown>;
    expect(said).toMatchObject({ numPassedTests: TESTS + REPLACING, numFailedTests: 0, success: true });
  }, 120_000);

  test('in node:test, with its mock timers, where each file has servers of its own', async () => {
    const said = await project.runNode(
      env(),
      '--import',
      'tsx',
      '--test',
      ...KINDS.map((kind) => `node/${kind}.test.ts`),
    );
    expect(said).toMatch(new RegExp(`pass ${TESTS}$`, 'm'));
    expect(said).toMatch(/fail 0$/m);
  }, 120_000);
});
