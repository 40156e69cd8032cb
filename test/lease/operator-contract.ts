import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { MOST_REFUSALS, type Refusal } from '../../src/base/refusal.js';
import { someKey } from './actors.js';
import { atMost, claimOf, LONG, type MakeActor } from './claims.js';

/** The part of the contract for those who look after the locks of others. */
export function describeOperators(name: string, makeActor: MakeActor): void {
  const make = async () => (await makeActor()).store;
  /** A client without a connection notes nothing. */
  const inUse = async () => {
    const store = await make();
    await store.inspect(someKey());
    return store;
  };
  const refusal = (key: string, more: Partial<Refusal> = {}): Refusal => {
    return { id: randomUUID(), key, token: '5', reason: 'other-key', ...more };
  };
  const nothing = (key: string) => ({ key, holder: undefined, expiresIn: 0, waiting: 0 });

  describe(`${name}: for operators`, () => {
    test('inspect tells who has a key and for how long, and that nobody has it', async () => {
      const [holder, operator] = [await make(), await make()];
      const claim = claimOf(someKey());
      expect(await operator.inspect(claim.key)).toEqual(nothing(claim.key));
      await holder.acquire(claim);
      const state = await operator.inspect(claim.key);
      expect(state).toEqual({ key: claim.key, holder: claim.holder, expiresIn: expect.any(Number), waiting: 0 });
      expect(state.expiresIn).toBeGreaterThan(0);
      expect(state.expiresIn).toBeLessThanOrEqual(atMost(LONG));
      await holder.release(claim);
      expect(await operator.inspect(claim.key)).toEqual(nothing(claim.key));
    });

    test('to inspect is to change nothing', async () => {
      const [holder, operator] = [await make(), await make()];
      const claim = claimOf(someKey());
      await operator.inspect(claim.key);
      expect(await holder.acquire(claim)).toMatchObject({ taken: true });
      await operator.inspect(claim.key);
      expect(await holder.extend([claim])).toEqual(['extended']);
    });

    test('list names the keys that somebody has, whatever characters they are made of, and no others', async () => {
      const [holder, operator] = [await make(), await make()];
      const keys = ['', ':lease', ':queue', '{', '}', '}:queue', '*?[a]\\', '\n', '🔒'].map((end) => someKey() + end);
      const claims = keys.map((key) => claimOf(key));
      for (const claim of claims) await holder.acquire(claim);
      const gone = claimOf(someKey());
      await holder.acquire(gone);
      await holder.release(gone);
      const listed = await operator.list();
      expect(new Set(listed.map(({ key }) => key)).size).toBe(listed.length);
      const states = listed.filter(({ key }) => keys.includes(key) || key === gone.key);
      expect(states.map(({ key }) => key).toSorted()).toEqual(keys.toSorted());
      for (const { key, holder: id, waiting } of states) {
        expect({ id, waiting }).toEqual({ id: claims.find((claim) => claim.key === key)?.holder, waiting: 0 });
      }
    });

    test('force takes a key from its holder, and says whether it had it', async () => {
      const [holder, operator, contender] = [await make(), await make(), await make()];
      const claim = claimOf(someKey());
      expect(await operator.force(claim.key, claim.holder)).toBe(false);
      await holder.acquire(claim);
      expect(await operator.force(claim.key, claim.holder)).toBe(true);
      expect(await holder.extend([claim])).toEqual(['gone']);
      expect(await contender.acquire(claimOf(claim.key))).toMatchObject({ taken: true });
      // What its last holder does late does not touch the successor.
      await holder.release(claim);
      expect(await contender.acquire(claimOf(claim.key))).toMatchObject({ taken: false });
    });

    test('a refused write that one client has noted is read by another, whatever characters it has', async () => {
      const [noting, operator] = [await inUse(), await make()];
      const hostile = ['\n1 {}', '"}', '\\', '🔒\u2028', '%s %d'].map((key) =>
        refusal(key, { fence: '7', model: key }),
      );
      const noted = [refusal(someKey(), { reason: 'superseded' }), ...hostile];
      await noting.noteRefusals(noted);
      const ids = noted.map(({ id }) => id);
      const read = (await operator.refusals()).filter(({ id }) => ids.includes(id));
      expect(read).toEqual(noted.map((each) => ({ ...each, ago: expect.any(Number) })));
      for (const { ago } of read) {
        expect(ago).toBeGreaterThanOrEqual(0);
        expect(ago).toBeLessThan(60_000);
      }
      // It is no key.
      const keys = new Set(noted.map(({ key }) => key));
      expect((await operator.list()).filter(({ key }) => keys.has(key) || key.includes('refusals'))).toEqual([]);
    });

    test('of more refused writes than are kept the last ones stay, in their order', async () => {
      const [noting, operator] = [await inUse(), await make()];
      const noted = Array.from({ length: MOST_REFUSALS + 3 }, () => refusal(someKey()));
      for (const part of [noted.slice(0, 50), noted.slice(50)]) await noting.noteRefusals(part);
      const read = await operator.refusals();
      expect(read.length).toBeLessThanOrEqual(MOST_REFUSALS);
      const own = read.map(({ id }) => id).filter((id) => noted.some((each) => each.id === id));
      expect(own.length).toBeGreaterThan(MOST_REFUSALS / 2);
      expect(own).toEqual(noted.map(({ id }) => id).slice(-own.length));
    });

    test('force touches no other key', async () => {
      const [holder, operator] = [await make(), await make()];
      const [claim, other] = [claimOf(someKey()), claimOf(someKey())];
      await holder.acquire(claim);
      await holder.acquire(other);
      await operator.force(claim.key, claim.holder);
      expect(await holder.extend([claim, other])).toEqual(['gone', 'extended']);
    });
  });
}
