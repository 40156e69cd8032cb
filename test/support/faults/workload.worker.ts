// One process of the workload: callers that take hot keys, read, write, and note what they were told.
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { Outcome } from './history.js';
import { Journal } from './journal.js';
import type { Cast, Go, Product, ToWorker } from './messages.js';
import { Random } from './random.js';
import { turn } from './turn.js';
import { moveWallClock } from './wall-clock.js';
import { openWay, type WayName } from './ways/index.js';
import type { Way } from './ways/way.js';

let cast: Cast | undefined;
let journal: Journal | undefined;
let resting = false;
let dawdling = false;
let working: Promise<unknown> = Promise.resolve();
/** The callers that have not got anything done since `prove`. */
const unproven = new Set<string>();
const ways = new Map<WayName, Way>();

for (const event of ['unhandledRejection', 'uncaughtException'] as const)
  process.on(event, (error) => journal?.write({ note: 'trouble', what: `${event}: ${inspect(error)}` }));
process.on('SIGINT', () => {});

process.on('message', (message: ToWorker) => {
  switch (message.type) {
    case 'cast':
      cast = message;
      return;
    case 'go':
      resting = false;
      journal?.close();
      journal = new Journal(message.journals, `${cast?.name}`);
      working = Promise.all(Array.from({ length: message.callers }, (_, caller) => work(message, caller)));
      return say('going');
    case 'dawdle':
      dawdling = true;
      return;
    case 'prove':
      for (const caller of callers) unproven.add(caller);
      return;
    case 'rest':
      resting = true;
      void working.then(() => say('resting'));
      return;
    case 'stall':
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, message.ms);
      return;
    case 'move clock':
      moveWallClock(message.ms);
  }
});
say('here');

const callers = new Set<string>();

async function work({ products, ways: names, seed }: Go, number: number): Promise<void> {
  const caller = `${cast?.name}.${number}`;
  const random = new Random(`${seed} ${caller}`);
  callers.add(caller);
  for (let count = 0; !resting; count++) {
    const name = random.one(names);
    const way = wayOf(name, random);
    const chosen = choose(products, random.whole(1, way.mostKeys), random);
    const began = unproven.has(caller);
    const outcome = await operate(way, name, `${seed}:${caller}:${count}`, caller, chosen, random);
    if (outcome === 'ok' && began && unproven.delete(caller) && unproven.size === 0) say('proven');
    // Whoever was refused at once would otherwise do nothing but ask.
    await sleep(outcome === 'ok' ? random.whole(0, 5) : random.whole(5, 30));
  }
  callers.delete(caller);
}

async function operate(
  way: Way,
  name: WayName,
  id: string,
  caller: string,
  products: readonly Product[],
  random: Random,
): Promise<Outcome> {
  const keys = products.map(({ key }) => key);
  const plan = {
    operation: id,
    worker: cast?.name ?? '',
    products,
    add: random.whole(1, 9),
    // Mostly short; now and then longer than a renewal's interval.
    think: () => {
      const long = dawdling || random.next() < 0.03;
      dawdling = false;
      return long ? random.whole(250, 400) : random.whole(0, 8);
    },
  };
  let runs = 0;
  journal?.write({ note: 'asked', id, caller, keys, way: name });
  try {
    await way.run(keys, random.whole(300, 600), async (tx, token) => {
      journal?.write({ note: 'turn', id, keys, token: String(token) });
      await turn(tx, token, plan, ++runs);
    });
    journal?.write({ note: 'told', id, outcome: 'ok' });
    return 'ok';
  } catch (error) {
    const { code = 'NO_CODE', name } = error as { code?: string; name?: string };
    const outcome = code === 'COMMIT_UNKNOWN' ? 'unknown' : 'error';
    journal?.write({ note: 'told', id, outcome, code: code === 'NO_CODE' ? `${name}` : code });
    return outcome;
  }
}

function wayOf(name: WayName, random: Random): Way {
  const means = () => ({
    site: (cast as Cast).site,
    random,
    onEvent: (type: string) => journal?.write({ note: 'event', type }),
  });
  const way = ways.get(name) ?? openWay(name, means());
  ways.set(name, way);
  return way;
}

function choose(products: readonly Product[], count: number, random: Random): Product[] {
  const left = [...products];
  return Array.from({ length: Math.min(count, left.length) }, () => {
    const [chosen] = left.splice(random.whole(0, left.length - 1), 1);
    return chosen as Product;
  });
}

function say(type: string): void {
  process.send?.({ type });
}
