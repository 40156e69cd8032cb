import { type Board, boardOf } from './board.js';
import { type LockingClient, sourceOf } from './client-source.js';
import { type BoardOptions, resolveBoardOptions } from './options.js';

export type { Board } from './board.js';
export type { LockingClient, OperatorLocks } from './client-source.js';
export { toNodeListener } from './node-listener.js';
export type { BoardOptions } from './options.js';

/**
 * A page that shows the locks of a client, or of `fencedLocks`, as they are taken, waited for and given back, as a handler of web requests. It
 * has **no authentication of its own**: whoever reaches it sees the keys. Asks the servers only while somebody looks.
 *
 * @throws InvalidOptionError for an option that cannot be used, and for a client without locks.
 */
export function createBoard(client: LockingClient, options: BoardOptions = {}): Board {
  return boardOf(sourceOf(client), resolveBoardOptions(options));
}
