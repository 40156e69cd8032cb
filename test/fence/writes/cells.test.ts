import { afterAll, expect, test } from 'vitest';
import { StaleTokenError } from '../../../src/index.js';
import { type FenceClient, type FenceTx, FenceWorld } from '../../support/fence-world.js';
import { describeWithShop } from '../../support/shop.js';
import { CASES, type Case } from './cases.js';
import { fenceOf, makeRows, type Rows, raise, readRow, recreate, remove } from './rows.js';

/** How a cell ended: with the token of its turn, or an error. */
type End = { readonly token: bigint } | { readonly error: unknown };

const STATES = ['fresher before', 'fresher while we wait', 'equal', 'lower', 'missing', 're-created'] as const;
const STALE: ReadonlySet<string> = new Set(['fresher before', 'fresher while we wait']);

let cells = 0;
afterAll(() =>
  console.log(`${cells} cells: ${CASES.length} writes × ${STATES.length} states, with and without the guard`),
);

for (const guard of [undefined, 'allow'] as const) {
  describeWithShop(`every write, guard: ${guard ?? 'none'}`, () => {
    const world = new FenceWorld(`fence_cells_${guard ?? 'none'}`, guard);
    let prisma: FenceClient;

    async function run({ target, write }: Case, state: string, rows: Rows): Promise<End> {
      prisma ??= world.client();
      const { admin } = world;
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
      const other = await admin.connect();
      try {
        await other.query(`BEGIN; ${raise(target, id)}`);
        const end = held();
        await Promise.race([end, world.blocked()]);
        await other.query('COMMIT');
        return await end;
      } finally {
        other.release();
      }
    }

    async function prepare({ target }: Case, state: string, rows: Rows): Promise<void> {
      const { admin } = world;
      const id = rows[target];
      if (state === 'fresher before') await admin.query(raise(target, id));
      if (state === 'lower') await admin.query(raise(target, id, 1n));
      if (state === 'missing') await admin.query(remove(target, id));
      if (state === 're-created') {
        await admin.query(raise(target, id));
        await recreate(admin, target, id);
      }
    }

    test.each(CASES)('$name ($target)', async (one) => {
      for (const state of STATES) {
        const rows = await makeRows(world.admin);
        const id = rows[one.target];
        await prepare(one, state, rows);
        const before = await readRow(world.admin, one.target, id);
        const end = await run(one, state, rows);
        const after = await readRow(world.admin, one.target, id);
        const error = 'error' in end ? (end.error as { code?: string; option?: string }) : undefined;
        cells++;
        const cell = `${state}: ${String(error ?? 'resolved')}`;
        if (guard === undefined && one.refused !== undefined) {
          expect(error, cell).toMatchObject({ code: 'INVALID_OPTION', option: one.refused });
          if (state !== 'fresher while we wait') expect(after, cell).toEqual(before);
        } else if (STALE.has(state)) {
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
  });
}
