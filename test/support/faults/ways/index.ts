import type { HandedOver } from '../messages.js';
import { type Clients, plainClient } from './client.js';
import { aborted, overdue, unrenewed } from './early.js';
import { handle } from './handle.js';
import { joined } from './joined.js';
import { plainRedisLock } from './plain-redis-lock.js';
import { tryWithLock } from './try-with-lock.js';
import type { Way } from './way.js';
import { withLock } from './with-lock.js';

type HandOver = (given: HandedOver) => void;

/** The ways of the package. */
const WAYS = {
  $withLock: (clients: Clients) => withLock(clients.get('standard')),
  '$withLock of several keys': (clients: Clients) => withLock(clients.get('standard'), 3),
  '$withLock, joined': (clients: Clients) => joined(clients.get('standard')),
  "$withLock, onRedisUnavailable: 'postgres'": (clients: Clients) =>
    withLock(clients.get('on Postgres alone if need be'), 2),
  $tryWithLock: (clients: Clients) => tryWithLock(clients.get('standard')),
  $lock: (clients: Clients) => handle(clients.get('standard')),
  '$lock, handed over': (clients: Clients, handOver: HandOver) => handle(clients.get('standard'), handOver),
} as const satisfies Record<string, (clients: Clients, handOver: HandOver) => Way>;

/** Those that end early: by their own signal, by their timeout, or because their lease is not renewed. */
const EARLY = {
  '$withLock, aborted by its caller': (clients: Clients) => aborted(clients.get('standard')),
  '$withLock, past its timeout': (clients: Clients) => overdue(clients.get('standard')),
  '$withLock, past its lease': (clients: Clients) => unrenewed(clients.get('standard')),
} as const satisfies Record<string, (clients: Clients) => Way>;

/** For the controls: one without its row conditions, and one without the package. */
const CONTROLS = {
  '$withLock, nothing fenced': (clients: Clients) => withLock(clients.get('nothing fenced')),
  'plain Redis lock': (clients: Clients) => plainRedisLock(clients.site, plainClient(clients.site)),
} as const satisfies Record<string, (clients: Clients) => Way>;

export type WayName = keyof typeof WAYS | keyof typeof EARLY | keyof typeof CONTROLS;

export const WAYS_OF_THE_PACKAGE = Object.keys(WAYS) as readonly WayName[];

/** For one process: these, and those that end early. */
export const WAYS_IN_MEMORY = Object.keys({ ...WAYS, ...EARLY }) as readonly WayName[];

export function openWay(name: WayName, clients: Clients, handOver: HandOver): Way {
  return { ...WAYS, ...EARLY, ...CONTROLS }[name](clients, handOver);
}
