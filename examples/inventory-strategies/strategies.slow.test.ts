import { expect, inject, test } from 'vitest';
import { describeWithShop } from '../../test/support/shop.js';
import { startWorker } from '../../test/support/worker.js';
import { STRATEGIES } from './strategies/index.js';

const UNITS = 20;
const LOSE = ['no lock', 'SETNX + TTL', 'SETNX + owner check', 'SETNX + release in Lua', 'watchdog + pub/sub'];
const REFUSE = ['token checked in Redis', '$withLock'];

describeWithShop('ten ways to sell from stock, with one process frozen in the middle of a sale', () => {
  test('locks that expire lose sales; a fence, a row lock and one statement lose none', {
    timeout: 240_000,
  }, async () => {
    const args = ['--units', String(UNITS), '--buyers', '50'];
    const env = { DATABASE_URL: inject('postgres').app, REDIS_URL: inject('redis').url };
    const child = startWorker(new URL('main.ts', import.meta.url), args, env);
    const { code } = await child.exited;
    const rows = new Map(
      child.output
        .split('\n')
        .map((line) => line.split('│').map((cell) => cell.trim()))
        .map(([, strategy = '', , ...numbers]) => [strategy, numbers.map(Number)] as const),
    );
    for (const strategy of Object.keys(STRATEGIES)) {
      const [sold = Number.NaN, oversold = Number.NaN, lost = Number.NaN, refused = Number.NaN] =
        rows.get(strategy) ?? [];
      const figures = { strategy, sold, oversold, lost };
      if (LOSE.includes(strategy)) expect(lost, strategy).toBeGreaterThan(0);
      else expect(figures).toEqual({ strategy, sold: UNITS, oversold: 0, lost: 0 });
      if (REFUSE.includes(strategy)) expect(refused, strategy).toBeGreaterThan(0);
    }
    expect(code, child.output).toBe(0);
  });
});
