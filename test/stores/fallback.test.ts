import { expect, test } from 'vitest';
import { LockUnavailableError } from '../../src/base/errors.js';
import * as scripts from '../../src/redis/scripts.generated.js';
import { FallbackStore } from '../../src/stores/fallback.js';
import { untilHolds } from '../support/eventually.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { Actor, FOR_EVER, leaseName, someKey } from '../waiting/actors.js';
import { ObservedStore } from '../waiting/observed-store.js';

/** How long one command may take. */
const COMMAND_TIME = 150;

describeWithRedis('a Redis that cannot be reached, where Postgres may keep order alone', (redis) => {
  /** An actor that gets on without Redis, and what Redis itself was asked. */
  function make(passOnAfter = FOR_EVER) {
    const asked: ObservedStore[] = [];
    const actor = new Actor({
      url: redis().url,
      commandTimeout: COMMAND_TIME,
      passOnAfter,
      wrap: (store, emit) => {
        const observed = new ObservedStore(store);
        asked.push(observed);
        return new FallbackStore(observed, emit);
      },
    });
    const types = () => actor.events.map(({ type }) => type).filter((type) => type.startsWith('redis-'));
    return { actor, inner: asked[0] as ObservedStore, types };
  }

  /** Somebody asks until it is noticed that Redis is back. */
  async function untilBack({ actor, types }: Pick<ReturnType<typeof make>, 'actor' | 'types'>): Promise<void> {
    await untilHolds(
      async () => {
        await actor.release(await actor.acquire(someKey()));
        expect(types().at(-1)).toBe('redis-back');
      },
      { timeout: 10_000 },
    );
  }

  async function whileFrozen(work: () => Promise<void>): Promise<void> {
    redis().freeze();
    try {
      await work();
    } finally {
      redis().thaw();
    }
  }

  test('frozen: the first caller meets its silence once, and the next ones do not even ask', async () => {
    const { actor, inner, types } = make();
    await actor.redis.ping();
    await whileFrozen(async () => {
      const turns = [await actor.acquire(someKey())];
      for (let each = 0; each < 5; each++) turns.push(await actor.acquire(someKey()));
      expect(turns.map(({ lease }) => lease.shared)).toEqual(Array(6).fill(true));
      expect(inner.looks.count).toBe(1);
      expect(types()).toEqual(['redis-passed-by']);
    });
  });

  test('a call that must not share is refused at once with the cause, and the one behind it gets on', async () => {
    const { actor } = make();
    const key = someKey();
    await actor.redis.ping();
    await whileFrozen(async () => {
      const handle = actor.acquire(key, { isHandle: true });
      const call = actor.acquire(key);
      await expect(handle).rejects.toBeInstanceOf(LockUnavailableError);
      await expect(handle).rejects.toMatchObject({ cause: { message: expect.stringContaining('answer') } });
      const turn = await call;
      // Nor does one share that comes when somebody else does already.
      const late = actor.acquire(key, { isHandle: true });
      turn.end();
      await expect(late).rejects.toBeInstanceOf(LockUnavailableError);
    });
  });

  test('it comes back without a restart: what Redis was left with is given back, and callers wait in it again', async () => {
    const made = make();
    const { actor, inner } = made;
    const key = someKey();
    // It knows the scripts, and hears no answer from now on.
    for (const { lua } of Object.values(scripts)) await actor.redis.script('LOAD', lua);
    redis().freeze();
    const turn = await actor.acquire(key);
    turn.end();
    await inner.released.settled();
    redis().thaw();
    await untilBack(made);
    await inner.released.settled();
    expect((await actor.store.inspect(key)).holder).toBeUndefined();
    const again = await actor.acquire(key);
    expect(again.lease.shared).toBe(false);
    await actor.release(again);
    expect(made.types()).toEqual(['redis-passed-by', 'redis-back']);
  });

  test('a chain of local turns goes on without it, and ends when it is back', async () => {
    const made = make(0);
    const { actor, inner } = made;
    const key = someKey();
    await actor.release(await actor.acquire(someKey()));
    redis().freeze();
    const first = await actor.acquire(key);
    const [second, third] = [actor.acquire(key), actor.acquire(key)];
    first.end();
    expect((await second).lease.shared).toBe(true);
    expect(inner.yielding.count).toBe(0);
    redis().thaw();
    await untilBack(made);
    (await second).end();
    const turn = await third;
    expect(turn.lease.shared).toBe(false);
    await actor.release(turn);
  });

  test('a value of other software under the name of one key is told to the callers of that key, and no outage', async () => {
    const { actor, types } = make();
    const [key, other] = [someKey(), someKey()];
    await actor.redis.hset(leaseName(key), 'field', 'value');
    const refused = { code: 'LOCK_UNAVAILABLE', cause: { message: expect.stringContaining('forceRelease') } };
    await expect(actor.acquire(key, { waitTime: 0 })).rejects.toMatchObject(refused);
    const turn = await actor.acquire(other);
    expect(turn.lease.shared).toBe(false);
    await actor.release(turn);
    // Also if it comes while a process has the key.
    const held = await actor.acquire(other);
    await actor.redis.del(leaseName(other));
    await actor.redis.hset(leaseName(other), 'field', 'value');
    await expect(actor.store.yield(held.lease)).rejects.toThrow('WRONGTYPE');
    expect(types()).toEqual([]);
    await actor.redis.del(leaseName(key), leaseName(other));
    held.end();
  });

  test('killed: who waits in it gets on, and it comes back', async () => {
    const made = make();
    const { actor } = made;
    const other = new Actor({ url: redis().url });
    const key = someKey();
    await other.acquire(key);
    const waiting = actor.acquire(key);
    await actor.store.answers.reach(2);
    await redis().killHard();
    expect((await waiting).lease.shared).toBe(true);
    await redis().start();
    (await waiting).end();
    await untilBack(made);
  });
});
