// One process of the comparison: callers that sell units of one row until they are told to stop.
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkerMessage } from '../../test/support/worker.js';
import { contestantOf } from '../contestants/index.js';
import { House, type Site } from '../house.js';
import { nameOf } from '../measure/burst.js';
import { stamp } from '../measure/stamp.js';

/** Given on the command line. */
export interface Task {
  readonly site: Site;
  readonly contestant: string;
  /** Of the row. */
  readonly id: number;
  readonly leaseTime: number;
  readonly callers: number;
  /** A sale without an answer for so long is one that hung; ms. */
  readonly answerWithin: number;
  /** No other process has this name, nor had one before. */
  readonly name: string;
}

/** To the worker. `wait`: the next sale that has read its row says so, and writes only after `go on`. */
export interface Order extends WorkerMessage {
  readonly type: 'wait' | 'go on' | 'stop';
}

/** What a caller was told of its sale. */
export interface Told extends WorkerMessage {
  readonly type: 'told';
  /** Of this sale alone. */
  readonly buyer: string;
  /** `unknown`: by an error that leaves it open. `hung`: nothing. */
  readonly outcome: 'sold' | 'failed' | 'unknown' | 'hung';
  readonly error?: string;
  /** By a clock that all processes share; ms. */
  readonly at: number;
}

/** Of each sale, between its read and its write; ms. */
const THINKS = 2;
/** Between two callers that come for one sale each: some locks that have expired are noticed by newcomers alone; ms. */
const NEWCOMER_EVERY = 500;
/** A caller that is refused at once would otherwise do nothing but ask; ms. */
const PAUSE = 20;

const { site, contestant, id, leaseTime, callers, answerWithin, name } = JSON.parse(process.argv[2] as string) as Task;
const house = new House(site, leaseTime);
// Redis goes away now and then. Without a listener each time is a line on stderr.
house.redis.on('error', () => {});
const seller = await house.seller(contestantOf(contestant));

let selling = true;
let sales = 0;
let waits = false;
let goOn = () => {};

process.on('message', ({ type }: Order) => {
  waits = type === 'wait';
  if (type === 'go on') goOn();
  if (type === 'stop') selling = false;
});
// Ctrl-C reaches the whole process group; the one that started us ends us.
process.on('SIGINT', () => {});

process.send?.({ type: 'ready' });
await Promise.all([...Array.from({ length: callers }, comeAgain), newcomers()]);
process.send?.({ type: 'done' });

async function comeAgain(): Promise<void> {
  while (selling) {
    if ((await sell()) !== 'sold') await sleep(PAUSE);
  }
}

async function newcomers(): Promise<void> {
  const all: Array<Promise<unknown>> = [];
  for (; selling; await sleep(NEWCOMER_EVERY)) all.push(sell());
  await Promise.all(all);
}

/** Resolves to what its caller was told. */
async function sell(): Promise<Told['outcome']> {
  const buyer = `${name}.${sales++}`;
  const saying = (outcome: Told['outcome'], error?: unknown): Told => ({
    type: 'told',
    buyer,
    outcome,
    at: stamp(),
    ...(error !== undefined && { error: `${nameOf(error)}: ${(error as Error).message?.trim().split('\n').at(-1)}` }),
  });
  const answered = new AbortController();
  const waited = sleep(answerWithin, undefined, { signal: answered.signal }).catch(() => {});
  const sold = seller.sell({ key: `stock:${id}`, id, buyer, hasRead: think }).then(
    () => saying('sold'),
    (error: unknown) => saying(seller.isUnknown?.(error) ? 'unknown' : 'failed', error),
  );
  try {
    const told = await Promise.race([sold, waited.then(() => saying('hung'))]);
    process.send?.(told);
    return told.outcome;
  } finally {
    answered.abort();
  }
}

async function think(): Promise<void> {
  await sleep(THINKS);
  if (!waits) return;
  waits = false;
  await new Promise<void>((resolve) => {
    goOn = resolve;
    process.send?.({ type: 'in the middle' });
  });
}
