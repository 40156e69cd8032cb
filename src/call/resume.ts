import { randomUUID } from 'node:crypto';
import { Deadline } from '../base/clock.js';
import { refuseNestedCall } from '../base/held-keys.js';
import type { HandleState } from '../options/options.js';
import { Turn } from '../waiting/turn.js';
import { type LockHandle, opened } from './handle.js';
import { type LockCall, type Parts, traced } from './parts.js';
import { register, unleased } from './register.js';

/** Takes over the lock of the handle that `state` was made from. That handle loses it. */
export function resume<Tx>(parts: Parts, call: LockCall<Tx>, state: HandleState): Promise<LockHandle<Tx>> {
  return traced('$resumeLock', parts, call, (call) => takeOver(parts, call, state));
}

async function takeOver<Tx>(parts: Parts, call: LockCall<Tx>, state: HandleState): Promise<LockHandle<Tx>> {
  const { tokens, holders, leaseTime } = state;
  const { room } = parts;
  const { keys, options } = call;
  refuseNestedCall(keys, options.nested);
  const successors = keys.map(() => randomUUID());
  // Postgres comes first: from its commit on, the old handle cannot write, whatever happens in Redis.
  const old = unleased({ keys, holders, leaseTime });
  const registered = { tokens: tokens.map(BigInt), successors };
  const deadline = new Deadline(options.waitTime);
  const turns: Turn[] = [];
  room.throwIfClosing(old.key);
  const done = room.begin();
  try {
    const kept = await register(parts, call, old, deadline, { registered });
    try {
      const take = (key: string, index: number) => {
        const claim = { key, holder: holders[index] as string, leaseTime };
        return room.takeOver(claim, successors[index] as string, { ...options, deadline });
      };
      // Nothing has changed if this fails. The others together: the old handle, which learns of it, keeps them for a moment only.
      turns.push(await take(keys[0] as string, 0));
      const taken = await Promise.allSettled(keys.slice(1).map((key, index) => take(key, index + 1)));
      for (const one of taken) if (one.status === 'fulfilled') turns.push(one.value);
      for (const one of taken) if (one.status === 'rejected') throw one.reason;
      room.throwIfClosing(old.key);
      const turn = Turn.of(turns);
      const handle = opened(parts, call, turn, kept);
      call.trace?.had(turn);
      return handle;
    } catch (error) {
      for (const turn of turns) turn.end();
      // No lease was transferred, so make the old handle and its state valid again. Its lease may be there even if this client
      // does not find it: this client may have another `keyPrefix`, or another Redis.
      if (turns.length === 0) {
        const back = { tokens: registered.tokens, successors: holders };
        const own = { ...old, holders: successors };
        // Also for a caller that has given up.
        const quiet = { ...call, options: { ...options, signal: undefined }, trace: undefined };
        await register(parts, quiet, own, new Deadline(options.waitTime), {
          registered: back,
          whileClosing: true,
        }).catch(() => {});
      }
      throw error;
    }
  } finally {
    done();
  }
}
