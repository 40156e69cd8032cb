import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CLIENT_KINDS, ofKind } from '../../support/client-kinds.js';
import { type Fenced, FenceWorld, FRESHER, TABLES } from '../../support/fence-world.js';
import { describeWithShop } from '../../support/shop.js';
import { payload } from './payloads.js';
import { makeRows, type Row, type Rows, raise, snapshot } from './rows.js';

const RUNS = Number(process.env['FENCED_LOCK_RUNS'] ?? 150);
const SEED = Number(process.env['FENCED_LOCK_SEED'] ?? Date.now() % 2 ** 31);

const RANDOM = ['Member', 'Badge', 'Desk', 'Note', 'Tag', 'Mascot'] as const;
/** The rows of one run that can be fresher. */
const TARGETS = (rows: Rows) =>
  [...RANDOM.map((model) => [model, rows[model]] as const), ['Member', rows.boss], ['Member', rows.loner]] as const;

/** Without the guard what the database itself cascades is not held to the fence: it empties a key, or takes the row. */
function isCascade(model: Fenced, before: Row, after: Row | undefined, guarded: boolean): boolean {
  if (guarded) return false;
  if (after === undefined) return model === 'Note' || model === 'Mascot';
  const changed = Object.keys(before).filter((name) => before[name] !== after[name]);
  return changed.every((name) => /^(team|desk|boss|member)Id$/.test(name) && after[name] === null);
}

const GUARDED = { none: [], some: ['Member', 'Note', 'Tag'], all: RANDOM } as const;

for (const [guard, guarded] of Object.entries(GUARDED)) {
  describeWithShop(`random nested writes, guarded models: ${guard}`, () => {
    const world = new FenceWorld(`fence_random_${guard}`, 'allow', guarded);

    test(`no stale write lands in ${RUNS} runs`, { timeout: 30_000 + RUNS * 500 }, async () => {
      const clients = CLIENT_KINDS.map((kind) => ofKind(kind, world.client()));
      const ends: Record<string, number> = {};
      const decisions = fc.array(fc.nat(59), { minLength: 24, maxLength: 24 });
      const fresh = fc.subarray([0, 1, 2, 3, 4, 5, 6, 7]);
      const later = fc.subarray([0, 1, 2, 3, 4, 5, 6, 7], { maxLength: 3 });

      const client = fc.constantFrom(...clients);
      const property = fc.asyncProperty(decisions, fresh, later, fc.nat(12), client, async (...drawn) => {
        const [chosen, early, late, delay, prisma] = drawn;
        const rows = await makeRows(world.admin);
        const targets = TARGETS(rows);
        await world.overriding(async (session) => {
          for (const index of early) await session.query(raise(...(targets[index] ?? ['Tag', 0])));
        });
        const before = await snapshot(world.admin, rows);
        const { model, operation, args } = payload(chosen, rows);

        const held = prisma
          .$withLock(`random:${rows.n}`, async (tx, lock) => {
            const delegates = tx as unknown as Record<string, Record<string, (args: object) => Promise<unknown>>>;
            await delegates[model.toLowerCase()]?.[operation]?.(args);
            return lock.token;
          })
          .catch((error: { code?: string; name?: string }) => error.code ?? error.name ?? 'unknown');
        // Another key's holder, in the middle of it.
        await new Promise((resolve) => setTimeout(resolve, delay));
        const raised = new Set<string>();
        for (const index of late) {
          const [target, id] = targets[index] ?? ['Tag', 0];
          const { rowCount } = await world.overriding((session) => session.query(raise(target, id)));
          if (rowCount) raised.add(`${target} ${id}:${target === 'Note' ? 1 : 0}`);
        }
        const end = await held;
        const name = typeof end === 'bigint' ? 'committed' : end;
        ends[name] = (ends[name] ?? 0) + 1;

        const after = await snapshot(world.admin, rows);
        for (const [key, { model: of, row }] of before) {
          const now = after.get(key)?.row;
          if (raised.has(key) || JSON.stringify(now) === JSON.stringify(row)) continue;
          const fence = TABLES[of].fence;
          const context = `${key} after ${model}.${operation} ${JSON.stringify(args)}: ${name}`;
          const cascade = isCascade(of, row, now, guard === 'all');
          if (!cascade) expect(BigInt(row[fence] as number), context).toBeLessThan(FRESHER);
          expect(typeof end, context).toBe('bigint');
          if (now !== undefined && !cascade) expect(BigInt(now[fence] as number), context).toBe(end);
        }
        for (const key of raised) {
          const found = after.get(key);
          const context = `${key} raised during ${model}.${operation} ${JSON.stringify(args)}: ${name}`;
          if (found === undefined && guard !== 'all' && /^(Note|Mascot)/.test(key)) continue;
          expect(found, context).toBeDefined();
          const { fence, value } = TABLES[found?.model ?? 'Tag'];
          expect(BigInt(found?.row[fence] as number), context).toBe(FRESHER);
          expect(found?.row[value], context).toBe(50);
        }
      });
      await fc.assert(property, { numRuns: RUNS, seed: SEED, endOnFailure: RUNS > 150 });
      console.log(`seed ${SEED}, ${RUNS} runs, guarded models: ${guard}: ${JSON.stringify(ends)}`);
    });
  });
}
