import { afterAll, expect, test } from 'vitest';
import { StaleTokenError } from '../../../src/index.js';
import type { ClientKind } from '../../support/client-kinds.js';
import { type FenceClient, type FenceTx, FenceWorld, type Policy } from '../../support/fence-world.js';
import { describeWithShop } from '../../support/shop.js';
import { CASES, type Case } from './cases.js';
import { fenceOf, makeRows, type Rows, raise, readRow, recreate, remove, snapshot } from './rows.js';

/** How a cell ended: with the token of its turn, or an error. */
type End = { readonly token: bigint } | { readonly error: unknown };

const STATES = ['fresher before', 'fresher while we wait', 'equal', 'lower', 'missing', 're-created'] as const;
const STALE: ReadonlySet<string> = new Set(['fresher before', 'fresher while we wait']);
/** The policies differ in what a writer without a token may do, and here everybody has one. */
const FEW = ['fresher before', 'lower'] as const;

let cells = 0;
afterAll(() => console.log(`${cells} cells of ${CASES.length} writes`));

const WORLDS: ReadonlyArray<readonly [Policy | undefined, ClientKind]> = [
  [undefined, 'plain'],
  [undefined, 'extended'],
  ['allow', 'plain'],
  ['require', 'plain'],
  ['prove', 'plain'],
];

for (const [guard, kind] of WORLDS) {
  describeWithShop(`every write, guard: ${guard ?? 'none'}, client: ${kind}`, () => {
    const world = new FenceWorld(`fence_cells_${guard ?? 'none'}_${kind}`, guard, undefined, kind);
    let prisma: FenceClient;

    async function run({ target, write }: Case, state: string, rows: Rows): Promise<End> {
      prisma ??= world.client();
      const id = rows[target];
      const work = async (tx: FenceTx, token: bigint) => {
        if (state === 'equal') {
          const first = (tx as unknown as Record<string, { updateMany(args: object): Promise<unknown> }>)[
            target.toLowerCase()
          ];
          await first?.updateMany({ where: target === 'Note' ? { memberId: id } : { id }, data: { value: 60 } });
        }
        await write(tx, rows);
        return { token };
      };
      const held = () =>
        prisma.$withLock(`cell:${rows.n}`, (tx, lock) => work(tx, lock.token)).catch((error: unknown) => ({ error }));
      if (state !== 'fresher while we wait') return await held();
      let end: Promise<End> = Promise.resolve({ error: new Error('not begun') });
      await world.overriding(async (session) => {
        await session.query(raise(target, id));
        end = held();
        await Promise.race([end, world.blocked()]);
      });
      return await end;
    }

    async function prepare({ target }: Case, state: string, rows: Rows): Promise<void> {
      const { admin } = world;
      const id = rows[target];
      const change = {
        'fresher before': raise(target, id),
        lower: raise(target, id, 1n),
        missing: remove(target, id),
        're-created': raise(target, id),
      }[state];
      if (change !== undefined) await world.overriding((session) => session.query(change));
      if (state === 're-created') await recreate(admin, target, id);
    }

    const isRefused = ({ refused }: Case) => guard === undefined && refused !== undefined;

    test.each(CASES.filter((one) => !isRefused(one)))('$name ($target)', async (one) => {
      for (const state of guard === undefined || guard === 'allow' ? STATES : FEW) {
        const rows = await world.overriding(makeRows);
        const id = rows[one.target];
        await prepare(one, state, rows);
        const before = await readRow(world.admin, one.target, id);
        const end = await run(one, state, rows);
        const after = await readRow(world.admin, one.target, id);
        const error = 'error' in end ? (end.error as { code?: string }) : undefined;
        cells++;
        const cell = `${state}: ${String(error ?? 'resolved')}`;
        if (STALE.has(state)) {
          expect(error, cell).toBeInstanceOf(StaleTokenError);
          expect(error, cell).toMatchObject({
            reason: 'other-key',
            model: one.target,
            fence: 9_000_000_000_000_000_000n,
          });
          expect(after, cell).toMatchObject({ [one.target === 'Desk' ? 'desk_value' : 'value']: 50 });
          if (state === 'fresher before') expect(after, cell).toEqual(before);
        } else if (state === 'missing') {
          expect(error?.code ?? 'resolves', cell).toBe(one.missing);
        } else {
          expect(error, cell).toBeUndefined();
          const token = 'token' in end ? end.token : 0n;
          expect([undefined, token], cell).toContainEqual(await fenceOf(world.admin, one.target, id));
        }
      }
    });

    test.runIf(guard === undefined).each(CASES.filter(isRefused))(
      '$name ($target) is refused, and nothing of it is written',
      async ({ write, refused }) => {
        const rows = await makeRows(world.admin);
        const before = await snapshot(world.admin, rows);
        prisma ??= world.client();
        const held = prisma.$withLock(`cell:${rows.n}`, (tx) => write(tx, rows));
        const error = await held.catch((error: unknown) => error);
        cells++;
        expect(error).toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining('add-fence') });
        if (refused === 'limit') expect(error).toMatchObject({ option: 'limit' });
        else expect(error).toMatchObject({ option: expect.stringMatching(/^(Member|Team|Visit|Word)\.\w+$/) });
        expect(await snapshot(world.admin, rows)).toEqual(before);
      },
    );

    const INSERTS: Readonly<Record<string, (tx: FenceTx, row: { name: string; value: number }) => Promise<unknown>>> = {
      create: (tx, data) => tx.tag.create({ data }),
      createMany: (tx, data) => tx.tag.createMany({ data: [data] }),
      createManyAndReturn: (tx, data) => tx.tag.createManyAndReturn({ data: [data] }),
      'createMany of one': (tx, data) => tx.tag.createMany({ data }),
      upsert: (tx, row) => tx.tag.upsert({ where: { name: row.name }, update: { value: 9 }, create: row }),
    };

    test.each(Object.entries(INSERTS))('%s makes a row that has the token from its beginning', async (by, insert) => {
      prisma ??= world.client();
      const name = `made by ${by}`;
      const token = await prisma.$withLock(name, async (tx, lock) => {
        await insert(tx, { name, value: 1 });
        return lock.token;
      });
      const { rows } = await world.admin.query('SELECT value, fence FROM people."Tag" WHERE name = $1', [name]);
      expect(rows).toEqual([{ value: 1, fence: String(token) }]);
    });
  });
}
