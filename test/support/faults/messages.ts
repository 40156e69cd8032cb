import type { HandleState } from '../../../src/index.js';
import type { RedisSite } from '../redis-site.js';
import type { WorkerMessage } from '../worker.js';
import type { HandlePart } from './history.js';
import type { Kind } from './ways/client.js';
import type { WayName } from './ways/index.js';

/** Where a worker finds its servers: its own line to each. */
export interface Site {
  readonly databaseUrl: string;
  /** `memory`: none. All clients of the process share one memory store. */
  readonly redis: RedisSite | 'memory';
  /** Where the subscriber connection goes, where it has a line of its own. */
  readonly wakeUpsUrl?: string;
}

/** A key, and the row that is written under it. */
export interface Product {
  readonly key: string;
  readonly id: number;
}

/** To a worker that was started: who it is. Until then it only stands by. */
export interface Cast extends WorkerMessage, Kind {
  readonly type: 'cast';
  readonly name: string;
  readonly site: Site;
}

/** Work on these, until told to rest. */
export interface Go extends WorkerMessage {
  readonly type: 'go';
  /** The directory in which each worker keeps its own. */
  readonly journals: string;
  readonly products: readonly Product[];
  readonly ways: readonly WayName[];
  readonly callers: number;
  readonly seed: string;
}

/** Stand still, with the event loop and all, for so long. */
interface Stall extends WorkerMessage {
  readonly type: 'stall';
  readonly ms: number;
}

/** Believe that it is so much later, by the wall clock. */
interface MoveClock extends WorkerMessage {
  readonly type: 'move clock';
  readonly ms: number;
}

/** A handle on its way from a worker to another one. */
export interface HandedOver extends WorkerMessage {
  readonly type: 'handed over';
  readonly state: HandleState;
  readonly part: HandlePart;
}

/** The answer to `list`. */
export interface Leases extends WorkerMessage {
  readonly type: 'leases';
  readonly keys: readonly string[];
}

/** `flush`: the memory store loses all that it has. `list`: answer `leases` with the keys that are held there. `dawdle`: the next turn takes longer than a renewal's interval. `crowd`: the next turns are of one key, so that they follow each other on one connection. `prove`: answer `proven` when each caller has got something done that it begins from now on. `force release`: as an operator, of any key. */
interface Command extends WorkerMessage {
  readonly type: 'flush' | 'list' | 'dawdle' | 'crowd' | 'prove' | 'rest' | 'force release';
}

export type ToWorker = Cast | Go | Stall | MoveClock | HandedOver | Command;
