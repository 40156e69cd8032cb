// One process of the workload: callers that take hot keys, read, write, and note what they were told.
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import type { HandlePart, Outcome } from './history.js';
import { Journal } from './journal.js';
import type { Cast, Go, HandedOver, Product, ToWorker } from './messages.js';
import { Random } from './random.js';
import { turn, type Work } from './turn.js';
import { moveWallClock } from './wall-clock.js';
import { Clients, MEMORY } from './ways/client.js';
import { resumed } from './ways/handle.js';
import { openWay, type WayName } from './ways/index.js';
import type { Way } from './ways/way.js';

/** Several for each caller, because the ones before them may still take their time. */
const CROWD = 30;
/** A lease passes only to a caller who wants one that lasts as long. */
const USUAL_LEASE = 450;

let cast: Cast | undefined;
let journal: Journal | undefined;
let resting = false;
let dawdling = false;
/** How many of the next operations all want the same key. */
let crowding = 0;
let clients: Clients | undefined;
let going: Go | undefined;
let guests = 0;
let forced = 0;
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
      clients = new Clients({ ...message, onEvent: (type) => journal?.write({ note: 'event', type }) });
      return;
    case 'go':
      resting = false;
      going = message;
      journal?.close();
      journal = new Journal(message.journals, `${cast?.name}`);
      working = Promise.all(Array.from({ length: message.callers }, (_, caller) => work(message, caller)));
      return say('going');
    case 'flush':
      MEMORY.flush();
      return;
    case 'list':
      void listLeases();
      return;
    case 'dawdle':
      dawdling = true;
      return;
    case 'crowd':
      crowding = CROWD;
      return;
    case 'prove':
      for (const caller of callers) unproven.add(caller);
      return;
    case 'rest':
      resting = true;
      void working.then(() => say('resting'));
      return;
    case 'handed over':
      if (!resting && going) working = Promise.all([working, welcome(message, going)]);
      return;
    case 'force release':
      void forceRelease();
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
    const crowds = crowding > 0;
    if (crowds) crowding--;
    const name = crowds ? '$withLock' : random.one(names);
    const way = wayOf(name);
    const chosen = crowds ? products.slice(0, 1) : choose(products, random.whole(1, way.mostKeys), random);
    const outcome = await goThe(way, {
      name,
      id: `${seed}:${caller}:${count}`,
      caller,
      products: chosen,
      random,
      crowds,
    });
    // Whoever was refused at once would otherwise do nothing but ask.
    await sleep(outcome === 'ok' ? random.whole(0, 5) : random.whole(5, 30));
  }
  callers.delete(caller);
}

/** Somebody else's handle is resumed here. */
async function welcome(given: HandedOver, { products, seed }: Go): Promise<void> {
  const known = given.state.keys.flatMap((key) => products.find((product) => product.key === key) ?? []);
  // From a round that is over.
  if (known.length < given.state.keys.length || clients === undefined) return;
  const caller = `${cast?.name}.guest${guests++}`;
  const id = `${seed}:${caller}`;
  const way = resumed(clients.get('standard'), given);
  await goThe(way, { name: '$resumeLock', id, caller, products: known, random: new Random(id) });
}

interface Errand {
  readonly name: string;
  readonly id: string;
  readonly caller: string;
  readonly products: readonly Product[];
  readonly random: Random;
  readonly crowds?: boolean;
}

/** Resolves to what was told last. */
async function goThe(way: Way, errand: Errand): Promise<Outcome> {
  const { id, products, random, crowds } = errand;
  let last: Outcome = 'error';
  let count = 0;
  await way.run({
    keys: products.map(({ key }) => key),
    leaseTime: crowds || random.next() < 0.75 ? USUAL_LEASE : random.whole(300, 600),
    random,
    operate: async (attempt, part) => {
      last = await operate(attempt, { ...errand, id: `${id}.${count++}` }, part);
      return last;
    },
  });
  return last;
}

async function operate(
  attempt: (work: Work) => Promise<unknown>,
  { name: way, id, caller, products, random }: Errand,
  handle: HandlePart | undefined,
): Promise<Outcome> {
  const keys = products.map(({ key }) => key);
  const plan = {
    operation: id,
    worker: cast?.name ?? '',
    add: random.whole(1, 9),
    // Mostly short; now and then longer than a renewal's interval.
    think: () => {
      const long = dawdling || random.next() < 0.03;
      dawdling = false;
      return long ? random.whole(250, 400) : random.whole(0, 8);
    },
  };
  let runs = 0;
  const began = unproven.has(caller);
  journal?.write({ note: 'asked', id, caller, keys, way, ...(handle && { handle }) });
  try {
    await attempt(async (tx, token, key) => {
      const part = products.filter((product) => key === undefined || product.key === key);
      await turn(tx, token, { ...plan, products: part }, ++runs);
    });
    journal?.write({ note: 'told', id, outcome: 'ok' });
    if (began && unproven.delete(caller) && unproven.size === 0) say('proven');
    return 'ok';
  } catch (error) {
    const { code = 'NO_CODE', name } = error as { code?: string; name?: string };
    const outcome = code === 'COMMIT_UNKNOWN' ? 'unknown' : 'error';
    journal?.write({ note: 'told', id, outcome, code: code === 'NO_CODE' ? `${name}` : code });
    return outcome;
  }
}

async function forceRelease(): Promise<void> {
  if (going === undefined || clients === undefined) return;
  const { key } = new Random(`${going.seed} operator ${forced++}`).one(going.products);
  // Among the faults of others it may fail: who wants it tries again.
  for (let tries = 0; tries < 5; tries++) {
    try {
      await clients.get('operator').$locks.forceRelease(key);
      return say('forced');
    } catch {
      journal?.write({ note: 'event', type: 'forceRelease failed' });
      await sleep(200);
    }
  }
}

/** In the order of `$locks.list`, which knows all that this process has. */
async function listLeases(): Promise<void> {
  const held = await clients?.get('operator').$locks.list();
  process.send?.({ type: 'leases', keys: held?.map(({ key }) => key) ?? [] });
}

function wayOf(name: WayName): Way {
  if (clients === undefined) throw new Error('nobody is cast yet');
  const way = ways.get(name) ?? openWay(name, clients, (given) => process.send?.(given));
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
