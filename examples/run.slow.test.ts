import { expect, test } from 'vitest';
import { eventually } from '../test/support/eventually.js';
import { freePort } from '../test/support/servers/index.js';
import { describeWithShop } from '../test/support/shop.js';
import { startWorker } from '../test/support/worker.js';
import { ExampleWorld } from './support.js';

describeWithShop('npm run example', () => {
  const world = new ExampleWorld();
  const example = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    startWorker(new URL('run.ts', import.meta.url), args, env);

  test.each([
    ['seats', /^A1: .*, A8: /m],
    ['coupon', /^10 redeemed, 0 left$/m],
    ['webhook', /3 with an effect; paid: 21$/m],
    ['imports', /^3 connections at a time$/m],
    ['licences', /^8 films rendered$/m],
    ['nightly', /(process \d wrote report \d+\s+){3}/],
  ])('%s: its program does what its README says', { timeout: 60_000 }, async (name, output) => {
    expect(await world.output(new URL(`${name}/main.ts`, import.meta.url))).toMatch(output);
  });

  test('starts the servers that an example needs, and ends with it', { timeout: 60_000 }, async () => {
    const child = example(['seats']);
    const { code } = await child.exited;
    expect(child.output).toMatch(/^A1: .*, A8: /m);
    expect(code).toBe(0);
  });

  test.each(['fastify', 'nest'])('passes SIGTERM on to %s, which ends by itself', { timeout: 90_000 }, async (name) => {
    const port = await freePort();
    const child = example([name], { PORT: String(port) });
    await eventually('it listens', async () => child.output.includes('listening on'), { within: 60_000 });
    expect((await fetch(`http://127.0.0.1:${port}/stock/1`)).status).toBe(404);
    process.kill(child.pid, 'SIGTERM');
    // 1 if it had to be ended after two seconds.
    expect((await child.exited).code, child.output).toBe(0);
  });

  test('names the examples where there is none of that name', async () => {
    const child = example(['no-such-example']);
    expect((await child.exited).code).toBe(2);
    expect(child.output).toMatch(/^There is no program to run for no-such-example\.$/m);
    expect(child.output).toContain(
      'coupon, fastify, imports, inventory-strategies, licences, nest, nightly, seats, webhook',
    );
  });
});
