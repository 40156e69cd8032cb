import { PrismaPg } from '@prisma/adapter-pg';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { PrismaClient } from '../../generated/fence/client.js';
import { CLIENT_KINDS, ofKind } from '../../support/client-kinds.js';
import { type Fenced, FenceWorld, FRESHER, type Policy, TABLES } from '../../support/fence-world.js';
import { describeWithShop } from '../../support/shop.js';
import { MANY, type ModelName, payload, reaches } from './payloads.js';
import { beginAgain, type Found, type Row, SEQUENCES, SNAPSHOT, TARGETS } from './rows.js';

const RUNS = Number(process.env['FENCED_LOCK_RUNS'] ?? 60);
const SEED = Number(process.env['FENCED_LOCK_SEED'] ?? Date.now() % 2 ** 31);

type Delegates = Record<string, Record<string, (args: object) => Promise<unknown>>>;
interface End {
  /** The code of its error, or the result. */
  readonly what: unknown;
  readonly rows: readonly Found[];
  readonly token?: bigint;
}

const FENCES = ['fence', 'desk_fence'];
const bare = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value ?? null, (name, each: unknown) => {
      if (FENCES.includes(name)) return undefined;
      return typeof each === 'bigint' ? String(each) : each;
    }),
  );
const codeOf = (error: unknown) => {
  const { code, name } = error as { code?: string; name?: string };
  return `error ${code ?? name}`;
};
const keyOf = ({ model, key }: Found) => `${model} ${key}`;
const fenceOf = (row: Row) => BigInt((row['fence'] ?? row['desk_fence'] ?? 0) as number);

/** What the database itself cascades is not held to the fence without the guard: it empties a key, or takes the row. */
function isCascade(model: string, before: Row, after: Row | undefined): boolean {
  if (after === undefined) return model === 'Note' || model === 'Mascot';
  const changed = Object.keys(before).filter((name) => before[name] !== after[name]);
  return changed.every((name) => /^(team|desk|boss|member)Id$|^parent$/.test(name) && after[name] === null);
}

const ALL = Object.keys(TABLES) as Fenced[];
const WORLDS: Readonly<Record<string, readonly [Policy | undefined, readonly Fenced[]]>> = {
  'no guard': [undefined, []],
  'a guard on some models': ['allow', ['Member', 'Note', 'Tag']],
  'the guard, require': ['require', ALL],
  'the guard, prove': ['prove', ALL],
};

for (const [name, [policy, guarded]] of Object.entries(WORLDS)) {
  describeWithShop(`a write of any kind under a lock, against plain Prisma on the same rows: ${name}`, () => {
    const world = new FenceWorld(`fence_as_prisma_${name.replaceAll(/\W+/g, '_')}`, policy, guarded);
    const isOpen = (model: string) => model in TABLES && !guarded.includes(model as Fenced);
    let plain: PrismaClient;
    beforeAll(() => {
      const url = Object.assign(new URL(inject('postgres').admin), { pathname: new URL(world.url).pathname });
      plain = new PrismaClient({ adapter: new PrismaPg({ connectionString: url.href }) });
    });
    afterAll(() => plain.$disconnect());

    const snapshot = async () => (await world.admin.query<Found>(SNAPSHOT)).rows;

    /** As an administrator, and rolled back. */
    async function withoutLock(write: (tx: Delegates) => Promise<unknown>, before: readonly Found[]): Promise<End> {
      let end: End = { what: undefined, rows: before };
      class Done extends Error {}
      const done = plain.$transaction(async (tx) => {
        await tx.$executeRaw`SELECT fenced_lock.override('plain')`;
        const what = await write(tx as unknown as Delegates);
        end = { what: bare(what), rows: await tx.$queryRawUnsafe<Found[]>(SNAPSHOT) };
        throw new Done();
      });
      await done.catch((error: unknown) => {
        if (!(error instanceof Done)) end = { what: codeOf(error), rows: before };
      });
      return end;
    }

    test(`means the same, and no stale one lands (${RUNS} runs)`, { timeout: 60_000 + RUNS * 1_000 }, async () => {
      const clients = CLIENT_KINDS.map((kind) => ofKind(kind, world.client()));
      const ends: Record<string, number> = {};
      const decisions = fc.noBias(fc.array(fc.nat(59), { minLength: 40, maxLength: 40 }));
      const stale = fc.oneof(fc.constant([]), fc.constant([...TARGETS]), fc.subarray([...TARGETS]));

      const property = fc.asyncProperty(
        decisions,
        stale,
        fc.constantFrom(...clients),
        async (chosen, fresher, prisma) => {
          const { model, operation, args } = payload(chosen);
          const write = async (tx: Delegates) => await tx[model.toLowerCase()]?.[operation]?.(args);
          await world.admin.query(beginAgain(fresher));
          const before = await snapshot();
          const twin = await withoutLock(write, before);
          await world.admin.query(SEQUENCES);
          const locked = await prisma
            .$withLock('write', async (tx, { token }) => ({
              what: bare(await write(tx as unknown as Delegates)),
              token,
            }))
            .then(
              async (done): Promise<End> => ({ ...done, rows: await snapshot() }),
              async (error: unknown): Promise<End> => ({ what: codeOf(error), rows: await snapshot() }),
            );
          const context = `${model}.${operation} ${JSON.stringify(args)}, fresher: ${fresher.join(' ')}`;
          const is = typeof locked.what === 'string' ? locked.what : 'committed';
          ends[is] = (ends[is] ?? 0) + 1;

          const data = [args['data'], args['create'], args['update']];
          const isRefused =
            reaches(model, data, isOpen as (name: ModelName) => boolean) ||
            (isOpen(model) && args['limit'] !== undefined && MANY.includes(operation));
          expect(is === 'error INVALID_OPTION', context).toBe(isRefused);
          if (is.startsWith('error')) expect(locked.rows, context).toEqual(before);
          if (isRefused) return;

          const twins = new Map(twin.rows.map((each) => [keyOf(each), each.row]));
          const isLate = before.some((each) => {
            const after = twins.get(keyOf(each));
            if (fenceOf(each.row) < FRESHER || JSON.stringify(bare(after)) === JSON.stringify(bare(each.row)))
              return false;
            return guarded.length === ALL.length || !isCascade(each.model, each.row, after);
          });
          if (isLate) expect(is, context).toBe('error STALE_TOKEN');
          if (is === 'error STALE_TOKEN') {
            expect(fresher, context).not.toEqual([]);
            return;
          }
          expect(locked.what, context).toEqual(twin.what);
          expect(bare(locked.rows), context).toEqual(bare(twin.rows));
          const old = new Map(before.map((each) => [keyOf(each), each.row]));
          for (const each of locked.rows) {
            if (!(each.model in TABLES)) continue;
            const was = old.get(keyOf(each));
            const isSame = was !== undefined && JSON.stringify(bare(was)) === JSON.stringify(bare(each.row));
            const mayStay =
              isSame || (was !== undefined && guarded.length < ALL.length && isCascade(each.model, was, each.row));
            const fences = [locked.token, ...(mayStay ? [fenceOf(was)] : [])];
            expect(fences, `${keyOf(each)} of ${context}`).toContain(fenceOf(each.row));
          }
        },
      );
      console.log(`seed ${SEED}, ${name}`);
      await fc.assert(property, { numRuns: RUNS, seed: SEED });
      console.log(`seed ${SEED}, ${RUNS} runs, ${name}: ${JSON.stringify(ends)}`);
    });
  });
}
