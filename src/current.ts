import { checkNames, ensure } from './base/checks.js';
import { OutsideLockError } from './base/errors.js';
import { allHeld, innermostHeld } from './base/held-keys.js';
import type { Lock } from './call/lock.js';
import type { LockTx } from './client.js';
import { shareAdapter } from './prisma/client.js';

export interface CurrentTxOptions {
  /**
   * Outside of the function of a lock: `throw` refuses; `client` gives the client itself, but not in the function of a lock of
   * another client on the same adapter. Default: `throw`.
   */
  readonly outside?: 'throw' | 'client' | undefined;
}

/**
 * The client of the transaction that the present code runs in: of `$withLock`, of `$tryWithLock` or of a handle, taken on
 * this very client; of several inside each other, the innermost. For helpers that are not given `tx`.
 *
 * @throws OutsideLockError outside of the function of a lock of this client, and once that function has ended. With
 *   `outside: 'client'`, only in the function of a lock of another client on the same adapter.
 */
export function currentTx<Client extends object>(client: Client, options: CurrentTxOptions = {}): LockTx<Client> {
  checkNames('options', options, ['outside']);
  const { outside = 'throw' } = options;
  ensure(outside === 'throw' || outside === 'client', 'outside', "must be 'throw' or 'client'.");
  const held = client == null ? undefined : innermostHeld(client);
  if (held !== undefined) return held.transaction.tx as LockTx<Client>;
  checkClient('currentTx', client);
  // Reads on the client would miss what that lock's transaction has written.
  const other = allHeld().find(({ transaction }) => shareAdapter(transaction.client, client));
  if (outside === 'client' && other === undefined) return client;
  throw outsideOf('currentTx', 'its transaction', other);
}

/**
 * The lock whose function the present code runs in, as that function was given it. With a client of Prisma: of a lock that was
 * taken on it. Without: the innermost of any client.
 *
 * @throws OutsideLockError outside of the function of a lock.
 */
export function currentLock(client?: object): Lock {
  const held = innermostHeld(client);
  if (held !== undefined) return held.transaction.lock as Lock;
  if (client !== undefined) checkClient('currentLock', client);
  throw outsideOf('currentLock', 'its lock');
}

/** A client that is not there yet, such as a property that was not injected, must not look like "outside". */
function checkClient(name: string, client: unknown): void {
  const isClient = typeof (client as { readonly $withLock?: unknown } | null | undefined)?.$withLock === 'function';
  const orNone = name === 'currentLock' ? ', or left out' : '';
  ensure(
    isClient,
    'client',
    `of ${name} must be a Prisma client that is extended by fencedLock, and not its \`tx\`${orNone}.`,
  );
}

/** @param other the lock of another client that the code runs in. */
function outsideOf(name: string, what: string, other = innermostHeld()): OutsideLockError {
  if (other !== undefined) {
    return new OutsideLockError(
      `\`${name}\` was called inside a lock that was taken on another client. Use one client everywhere: the outermost, if ` +
        'it is extended several times.',
      { key: other.keys[0] },
    );
  }
  return new OutsideLockError(
    `\`${name}\` was called outside of the function of a lock, or after its end, where ${what} is not there. Call it in what ` +
      'that function calls and awaits' +
      (name === 'currentTx' ? ", or set `outside: 'client'` for code that also runs without a lock." : '.'),
  );
}
