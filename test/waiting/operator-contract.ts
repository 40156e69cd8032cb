import { describe, expect, test } from 'vitest';
import { someKey } from './actors.js';
import { atMost, claimOf, LONG, type MakeActor } from './claims.js';

/** The part of the contract for those who look after the locks of others. */
export function describeOperators(name: string, makeActor: MakeActor): void {
  const make = async () => (await makeActor()).store;
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
  });
}
