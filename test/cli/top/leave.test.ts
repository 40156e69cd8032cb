import { PassThrough } from 'node:stream';
import { stripVTControlCharacters, styleText } from 'node:util';
import { expect, test } from 'vitest';
import { Problem } from '../../../src/cli/problem.js';
import { Unanswered } from '../../../src/cli/top/asking.js';
import { LiveView } from '../../../src/cli/top/live.js';
import type { Sample, Sampler, TopRow } from '../../../src/cli/top/sample.js';
import { eventually } from '../../support/eventually.js';
import { gate } from '../../support/shop.js';

const ROW: TopRow = {
  key: 'stock:1',
  holder: 'h',
  holderId: 'h',
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
    asked: [{ address: 'PostgreSQL db:5432/shop' }, { address: 'Redis cache:6379' }],
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
    asked: [{ address: 'PostgreSQL db:5432/shop' }, { address: 'Redis cache:6379' }],
    now: () => new Date(0),
    clean: (text) => text,
    release: async () => '',
    report: () => {},
  });
  const done = view.run();
  await eventually('it is shown', async () => screen.includes('Redis has gone; trying again'));
  goOn.open();
  await eventually('it is gone', async () => screen.includes('stock:1') && !screen.includes('gone'));
  input.write('q');
  await done;
});

/** A view over this sampler, the pictures it draws, and the terminal's clock, which is one second further at each look. */
function viewOver(sample: (look: number) => Promise<Sample>, release = async (): Promise<string> => '') {
  const input = new PassThrough();
  const screen = { now: '' };
  let look = 0;
  const sampler = { sample: () => sample(++look) } as unknown as Sampler;
  const view = new LiveView(sampler, {
    input,
    output: { columns: 80, rows: 24, write: (text: string) => (screen.now = text) },
    colours: true,
    interval: 10,
    filter: '',
    asked: [{ address: 'PostgreSQL db:5432/shop' }, { address: 'Redis cache:6379' }],
    now: () => new Date(look * 1_000),
    clean: (text) => text,
    release,
    report: () => {},
  });
  return { input, screen, done: view.run(), looks: () => look };
}

/** A picture as text, its lines one behind the other. */
const read = (picture: string) => stripVTControlCharacters(picture).replaceAll(/\s+/g, ' ');

const closed = () => new Problem('Redis at cache:6379: Connection is closed.');

test('servers that cannot be asked do not end the view, which says since when, and how old its rows are', async () => {
  let isDown = false;
  const { input, screen, done, looks } = viewOver(async () => {
    if (isDown) throw new Unanswered('Redis cache:6379', closed());
    return { rows: [ROW], missing: [], refused: undefined };
  });
  await eventually('it draws', async () => screen.now.includes('stock:1'));
  isDown = true;
  const since = await eventually('it complains', async () => {
    return /Redis cache:6379 cannot be asked since (\d\d:\d\d:\d\d)Z: Connection is closed; trying again/.exec(
      read(screen.now),
    )?.[1];
  });
  const began = looks();
  await eventually('it goes on', async () => looks() > began + 10);
  // Neither the time of the last good sample nor that of the first failure goes on.
  const seconds = Number(since.slice(-2)) + 60 * Number(since.slice(3, 5));
  const last = new Date((seconds - 1) * 1_000).toISOString().slice(11, 19);
  expect(read(screen.now)).toContain(`as of ${last}Z 1 held`);
  expect(read(screen.now)).toContain(`cannot be asked since ${since}Z`);
  expect(screen.now).toContain(styleText('dim', 'stock:1  0.0', { validateStream: false }).slice(0, -5));
  isDown = false;
  await eventually('it has recovered', async () => !/as of|cannot be asked/.test(read(screen.now)));
  input.write('q');
  await done;
});

test('a failure of the first look ends the view with the Problem of the server', async () => {
  const problem = closed();
  const { done } = viewOver(async () => {
    throw new Unanswered('Redis cache:6379', problem);
  });
  await expect(done).rejects.toBe(problem);
});

test('the result of a release stays on the screen, in full, while the servers cannot be asked', async () => {
  let isDown = false;
  const warning = `If Redis has not lost the lease, ${'this is not the Redis of the application, '.repeat(4)}or so.`;
  const { input, screen, done, looks } = viewOver(
    async () => {
      if (isDown) throw new Unanswered('Redis cache:6379', closed());
      return { rows: [ROW], missing: [], refused: undefined };
    },
    async () => {
      isDown = true;
      return warning;
    },
  );
  await eventually('it draws', async () => screen.now.includes('stock:1'));
  input.write('jxy');
  await eventually('both fail', async () => read(screen.now).includes('cannot be asked'));
  const began = looks();
  await eventually('it goes on', async () => looks() > began + 2);
  expect(read(screen.now)).toContain(warning);
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
