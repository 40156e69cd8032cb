import { describe, expect, test } from 'vitest';
import { eventually } from '../../test/support/eventually.js';
import { describeWithShop } from '../../test/support/shop.js';
import { startWorker } from '../../test/support/worker.js';
import { parseOptions, UsageError } from './options.js';
import { conclusion, exitCode } from './report.js';
import { lost, oversold, type Tally } from './tally.js';

const ESCAPE = String.fromCharCode(27);

const exact: Tally = {
  strategy: '$withLock',
  units: 100,
  buyers: 300,
  sold: 100,
  orders: 100,
  left: 0,
  refused: 1,
  seconds: 4,
};
const lossy: Tally = { ...exact, strategy: 'plain Redis lock', sold: 130, orders: 130, refused: 0 };

async function demo(...args: string[]) {
  // Both would make a program colour a pipe.
  const child = startWorker(new URL('main.ts', import.meta.url), args, { CI: '1', FORCE_COLOR: '1' });
  const { code } = await child.exited;
  return { code, output: child.output };
}

describeWithShop('the demo', () => {
  test('sells exactly what there is under $withLock, and loses sales under a plain Redis lock', {
    timeout: 60_000,
  }, async () => {
    const { code, output } = await demo('--units', '20', '--buyers', '60');
    expect(output).toMatch(/\$withLock +│ +20 │ +0 │ +0 │ +[1-9]\d* │/);
    expect(output).toMatch(/plain Redis lock +│ +\d+ │ +\d+ │ +[1-9]\d* │/);
    expect(output).toMatch(/no lock +│ +\d+ │ +\d+ │ +[1-9]\d* │/);
    expect(output).not.toContain(ESCAPE);
    expect(code).toBe(0);
  });
});

describeWithShop('the demo with a board', () => {
  test('shows each shop by its name while they sell, the frozen one too', { timeout: 90_000 }, async () => {
    const args = ['--board', '--units', '60', '--buyers', '120'];
    const child = startWorker(new URL('main.ts', import.meta.url), args, { CI: '1' });
    try {
      const url = await eventually('the URL', async () => /http:\S+\//.exec(child.output)?.[0], { within: 60_000 });
      const gone = new AbortController();
      const { body } = await fetch(new URL('events', url), { signal: gone.signal });
      const decoder = new TextDecoder();
      let text = '';
      const told = (async () => {
        for await (const chunk of body ?? []) text += decoder.decode(chunk, { stream: true });
      })().catch(() => {});
      await eventually('it was sold', async () => child.output.includes('stays until Ctrl-C'), { within: 60_000 });
      gone.abort();
      await told;
      const shops = new Set([...text.matchAll(/"process":"(worker \d)"/g)].map((match) => match[1]));
      const frozen = /(worker \d): has read the quantity, is frozen/.exec(child.output)?.[1];
      expect(shops.size).toBeGreaterThanOrEqual(2);
      expect([...shops]).toContain(frozen);
    } finally {
      await child.kill();
    }
  });
});

test('an option that does not exist prints the usage and exits with 2', async () => {
  const { code, output } = await demo('--unit', '20');
  expect(output).toContain('Usage:');
  expect(code).toBe(2);
});

test.each([['--units', '5'], ['--units', 'many'], ['--units', '200', '--buyers', '199'], ['--buyers', '-1'], ['100']])(
  'refuses %j %j',
  (...args) => {
    expect(() => parseOptions(args)).toThrow(UsageError);
  },
);

test('a sale whose decrement was overwritten is lost, one of a unit that never was is oversold', () => {
  expect(lost(lossy)).toBe(30);
  expect(oversold(lossy)).toBe(30);
  expect(lost(exact)).toBe(0);
  expect(oversold(exact)).toBe(0);
});

describe('the exit code', () => {
  test('is 0 if the fenced run was exact, whatever the others lost', () => {
    expect(exitCode([lossy, exact])).toBe(0);
  });

  test.each<[string, Partial<Tally>]>([
    ['sold one too many', { sold: 101, orders: 101 }],
    ['sold one too few', { sold: 99, orders: 99, left: 1 }],
    ['lost an update', { left: 1 }],
    ['told a buyer of an order that does not exist', { orders: 99 }],
    ['wrote an order that no buyer was told of', { orders: 101 }],
  ])('is 1 if it %s', (_, flaw) => {
    const flawed = { ...exact, ...flaw };
    expect(exitCode([lossy, flawed])).toBe(1);
    expect(conclusion([flawed])).toContain('NOT EXACT');
  });

  test('is 1 if there was none', () => {
    expect(exitCode([lossy])).toBe(1);
  });
});
