import fc from 'fast-check';
import { Redis } from 'ioredis';
import { test } from 'vitest';
import { seed } from '../options/seed.js';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { type Step, World } from './model-world.js';

const RUNS = Number(process.env['FENCED_LOCK_RUNS'] ?? 30);
const PROCESSES = 3;

const slot = fc.nat({ max: PROCESSES - 1 });
const at = (verb: 'give up' | 'release' | 'crash' | 'freeze' | 'thaw') => fc.record({ do: fc.constant(verb), slot });
/** 0: as long as it takes. */
const waitTime = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 150 }) },
);
const acquire = fc.record({ do: fc.constant('acquire' as const), slot, waitTime, renew: fc.boolean() });
const pause = fc.record({
  do: fc.constant('pause' as const),
  ms: fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    { weight: 4, arbitrary: fc.integer({ min: 1, max: 50 }) },
    { weight: 1, arbitrary: fc.constant(250) },
  ),
});

/** `leaseTime`: of the leases that are renewed. A crash leaves one to its end, so it must not be long there. */
const settings = (leaseTime: number, others: readonly fc.WeightedArbitrary<Step>[]) =>
  fc.record({
    leaseTime: fc.constant(leaseTime),
    fairness: fc.constantFrom('process' as const, 'strict' as const),
    passOnAfter: fc.constantFrom(0, 5, 50),
    steps: fc.array(
      fc.oneof<fc.WeightedArbitrary<Step>[]>(
        { weight: 8, arbitrary: acquire },
        { weight: 4, arbitrary: pause },
        { weight: 5, arbitrary: at('release') },
        { weight: 3, arbitrary: at('give up') },
        { weight: 2, arbitrary: at('freeze') },
        { weight: 2, arbitrary: at('thaw') },
        { weight: 2, arbitrary: fc.constant({ do: 'lose messages' }) },
        { weight: 2, arbitrary: fc.constant({ do: 'flush' }) },
        ...others,
      ),
      { minLength: 20, maxLength: 60, size: 'max' },
    ),
  });

describeWithRedis(`any order of things (FC_SEED=${seed})`, (redis) => {
  // Where nobody crashes a lease is so long that nobody who sleeps to its end would be served in time.
  test.each([
    ['frozen processes, lost messages and FLUSHALL', settings(60_000, [])],
    ['crashes too', settings(600, [{ weight: 2, arbitrary: at('crash') }])],
  ])(
    `one has the key, nobody loses its turn, nobody sleeps beside a free key: with %s, ${RUNS} runs`,
    {
      timeout: 60_000 + RUNS * 6_000,
    },
    async (name, arbitrary) => {
      const admin = new Redis(redis().url);
      const proxies: FaultProxy[] = [];
      for (let index = 0; index < PROCESSES; index++) {
        proxies.push(await startFaultProxy({ host: redis().host, port: redis().port }));
      }
      const ends = { served: 0, 'gave up': 0, failed: 0 };
      const property = fc.asyncProperty(arbitrary, async ({ leaseTime, steps, ...options }) => {
        const world = new World(admin, redis().url, proxies, leaseTime, options);
        try {
          for (const step of steps) await world.take(step);
          await world.leaveFrozen();
          await world.calmDown();
          for (const end of ['served', 'gave up', 'failed'] as const) ends[end] += world.ends[end];
        } finally {
          for (const proxy of proxies) proxy.resume();
          await world.end();
        }
      });
      await fc.assert(property, { numRuns: RUNS, seed, endOnFailure: true });
      console.log(`seed ${seed}, ${RUNS} runs with ${name}: ${JSON.stringify(ends)}`);
      for (const proxy of proxies) await proxy.close();
      admin.disconnect();
    },
  );
});
