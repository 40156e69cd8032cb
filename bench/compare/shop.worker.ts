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
/** A caller that is refused at once would otherwise do nothing but ask; ms. */
const PAUSE = 20;

const { site, contestant, id, leaseTime, callers, answerWithin, name } = JSON.parse(process.argv[2] as string) as Task;
const house = new House(site, leaseTime);
// Redis goes away now and then. Without a listener each time is a line on stderr.
house.redis.on('error', () => {});
const seller = await house.seller(contestantOf(contestant));

let selling = true;
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
await Promise.all(Array.from({ length: callers }, (_, caller) => sellAll(caller)));
process.send?.({ type: 'done' });

async function sellAll(caller: number): Promise<void> {
  for (let count = 0; selling; count++) {
    const told = await sell(`${name}.${caller}.${count}`);
    process.send?.(told);
    if (told.outcome !== 'sold') await sleep(PAUSE);
  }
}

async function sell(buyer: string): Promise<Told> {
  const told = (outcome: Told['outcome'], error?: unknown): Told => ({
    type: 'told',
    buyer,
    outcome,
    at: stamp(),
    ...(error !== undefined && { error: `${nameOf(error)}: ${(error as Error).message?.trim().split('\n').at(-1)}` }),
  });
  const answered = new AbortController();
  const hung = sleep(answerWithin, told('hung'), { signal: answered.signal }).catch(() => told('hung'));
  const sold = seller.sell({ key: `stock:${id}`, id, buyer, hasRead: think }).then(
    () => told('sold'),
    (error: unknown) => told(seller.isUnknown?.(error) ? 'unknown' : 'failed', error),
  );
  try {
    return await Promise.race([sold, hung]);
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
