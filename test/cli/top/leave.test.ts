import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { LiveView } from '../../../src/cli/top/live.js';
import type { Sampler, TopRow } from '../../../src/cli/top/sample.js';
import { eventually } from '../../support/eventually.js';
import { gate } from '../../support/shop.js';

const ROW: TopRow = {
  key: 'stock:1',
  holder: 'h',
  leaseLeft: 1,
  waiting: 0,
  waiters: [],
  isInOrder: true,
  heat: 0,
  transaction: undefined,
};

/** A view that has drawn one key; `release` is what it does after a `y`. */
async function drawn(release: () => Promise<string>) {
  const input = new PassThrough();
  let screen = '';
  const reported: string[] = [];
  const sampler = { sample: async () => ({ rows: [ROW], missing: [], refused: undefined }) } as unknown as Sampler;
  const view = new LiveView(sampler, {
    input,
    output: { write: (text: string) => (screen += text) },
    colours: false,
    interval: 10,
    filter: '',
    asked: ['PostgreSQL db:5432/shop', 'Redis cache:6379'],
    now: () => new Date(0),
    clean: (text) => text,
    release,
    report: (text) => reported.push(text),
  });
  const done = view.run();
  done.catch(() => {});
  await eventually('it draws', async () => screen.includes('stock:1'));
  const press = (keys: string) => input.write(keys);
  press('jx');
  await eventually('it asks', async () => screen.includes('Take stock:1'));
  return { done, press, reported };
}

test('an error of one sample is shown, and not any more when the next one is well', async () => {
  const input = new PassThrough();
  let screen = '';
  let samples = 0;
  const goOn = gate();
  const sampler = {
    sample: async () => {
      if (++samples === 2) throw new Error('Redis has gone.');
      if (samples > 2) await goOn.opened;
      return { rows: [ROW], missing: [], refused: undefined };
    },
  } as unknown as Sampler;
  const view = new LiveView(sampler, {
    input,
    // What is on the screen now: each picture is one write.
    output: { write: (text: string) => (screen = text) },
    colours: false,
    interval: 10,
    filter: '',
    asked: ['PostgreSQL db:5432/shop', 'Redis cache:6379'],
    now: () => new Date(0),
    clean: (text) => text,
    release: async () => '',
    report: () => {},
  });
  const done = view.run();
  await eventually('it is shown', async () => screen.includes('Redis has gone.'));
  goOn.open();
  await eventually('it is gone', async () => screen.includes('stock:1') && !screen.includes('gone'));
  input.write('q');
  await done;
});

test('a release that was confirmed is done before top leaves, which prints what became of it', async () => {
  const goOn = gate();
  const { done, press, reported } = await drawn(async () => {
    await goOn.opened;
    return 'Unlocked.';
  });
  press('yq');
  goOn.open();
  await done;
  expect(reported).toEqual(['Unlocked.']);
});

test('a release that fails after q fails the command', async () => {
  const { done, press, reported } = await drawn(async () => {
    throw new Error('Postgres has gone.');
  });
  press('yq');
  await expect(done).rejects.toThrow('Postgres has gone.');
  expect(reported).toEqual([]);
});

test('a second q leaves at once, and fails the command because the result is not known', async () => {
  const { done, press } = await drawn(() => new Promise(() => {}));
  press('yqq');
  await expect(done).rejects.toThrow(/^Left before .*stock:1/);
});
