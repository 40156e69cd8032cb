import fc from 'fast-check';
import { expect, test } from 'vitest';
import { describeOfEachKind } from '../../support/client-kinds.js';
import { type FenceTx, FenceWorld, FRESHER } from '../../support/fence-world.js';

const RUNS = Number(process.env['FENCED_LOCK_RUNS'] ?? 60);
const SEED = Number(process.env['FENCED_LOCK_SEED'] ?? Date.now() % 2 ** 31);

/** Conditions on members, with everything that Prisma may take for no row or for every row. */
const { condition } = fc.letrec<{ condition: Record<string, unknown> }>((tie) => {
  const some = fc.array(tie('condition'), { maxLength: 2 });
  const related = fc.constantFrom({}, { OR: [] }, { OR: [{}] });
  const requiredKeys: never[] = [];
  const one = fc.record(
    {
      value: fc.constantFrom(1, { in: [] }, { notIn: [] }, { not: 1 }, {}),
      OR: some,
      AND: fc.oneof(some, tie('condition')),
      NOT: fc.oneof(some, tie('condition')),
      team: fc.oneof(
        fc.constant(null),
        related.map((is) => ({ is })),
        related.map((isNot) => ({ isNot })),
      ),
      notes: fc.oneof(
        ...['some', 'none', 'every'].map((quantifier) => related.map((where) => ({ [quantifier]: where }))),
      ),
    },
    { requiredKeys },
  );
  return { condition: fc.oneof({ maxDepth: 2, depthSize: 'small' }, fc.constantFrom({}, { OR: [] }), one) };
});

type Where = Record<string, unknown>;
type Write = (tx: FenceTx, where: Where) => PromiseLike<unknown>;

const MANY: Record<string, Write> = {
  updateMany: (tx, where) => tx.member.updateMany({ where, data: { value: 77 } }),
  updateManyAndReturn: (tx, where) => tx.member.updateManyAndReturn({ where, data: { value: 77 } }),
  deleteMany: (tx, where) => tx.member.deleteMany({ where }),
};
const ONE: Record<string, Write> = {
  update: (tx, where) => tx.member.update({ where: where as never, data: { value: 77 } }),
  'update, with a relation': (tx, where) =>
    tx.member.update({ where: { ...where, notes: {} } as never, data: { value: 77 } }),
  delete: (tx, where) => tx.member.delete({ where: where as never }),
  'delete, with an include': (tx, where) => tx.member.delete({ where: where as never, include: { team: true } }),
  upsert: (tx, where) =>
    tx.member.upsert({ where: where as never, update: { value: 77 }, create: { name: 'made', value: 9 } }),
};

describeOfEachKind('the condition of a write without a guard is met by the rows that meet it for Prisma', (kind) => {
  const world = new FenceWorld(`fence_conditions_${kind}`, undefined, [], kind);

  /** Four members, and what a write does to them, which is rolled back: in a lock, and in a plain transaction. */
  async function members() {
    const client = world.client();
    const rows = (tx: Pick<FenceTx, 'member'>) =>
      tx.member.findMany({ orderBy: { id: 'asc' }, select: { name: true, value: true } });
    await client.note.deleteMany();
    await client.member.deleteMany();
    await client.team.deleteMany();
    const { id: teamId } = await client.team.create({ data: { name: 'team' } });
    const ids: number[] = [];
    for (const [value, team] of [[1, teamId], [1], [2, teamId], [2]] as const) {
      const made = await client.member.create({
        data: { name: `${ids.length}`, value: value as number, teamId: team ?? null },
      });
      ids.push(made.id);
    }
    await client.note.create({ data: { memberId: ids[0] as number, number: 1, name: 'note', value: 1 } });
    class Done {
      constructor(readonly became: unknown) {}
    }
    const effect = async (
      run: (work: (tx: FenceTx) => Promise<never>) => Promise<unknown>,
      write: Write,
      where: Where,
    ) => {
      const work = async (tx: FenceTx) => {
        await write(tx, where);
        throw new Done(await rows(tx));
      };
      const error = (await run(work).catch((error: unknown) => error)) as Done | Error;
      return error instanceof Done ? error.became : ((error as { code?: string }).code ?? error.name);
    };
    return {
      ids,
      locked: (write: Write, where: Where) => effect((work) => client.$withLock('condition', work), write, where),
      bare: (write: Write, where: Where) =>
        effect((work) => client.$transaction((tx) => work(tx as unknown as FenceTx)), write, where),
    };
  }

  test.each(Object.entries(MANY))(`whatever is in it, also empty lists (seed ${SEED}): %s`, async (_, write) => {
    const { locked, bare } = await members();
    const property = fc.asyncProperty(condition, async (where) => {
      expect(await locked(write, where)).toEqual(await bare(write, where));
    });
    await fc.assert(property, { numRuns: RUNS, seed: SEED });
  });

  test('and the fresher ones of a list that Prisma sends in several statements are found', async () => {
    const { ids } = await members();
    const stale = [ids[0] as number, ids[3] as number];
    await world.overriding((session) =>
      session.query('UPDATE people."Member" SET fence = $2 WHERE id = ANY($1)', [stale, FRESHER]),
    );
    const absent = Array.from({ length: 40_000 }, (_, n) => -1 - n);
    const where = { id: { in: [stale[0] as number, ...absent, stale[1] as number] } };
    const refused = world.client().$withLock('list', (tx) => tx.member.updateMany({ where, data: { value: 77 } }));
    await expect(refused).rejects.toMatchObject({ code: 'STALE_TOKEN', model: 'Member' });
  });

  test.each(Object.entries(ONE))('of the row that it names: %s', async (_, write) => {
    const { ids, locked, bare } = await members();
    for (const more of [
      { OR: [] },
      { OR: [{ value: 1 }] },
      { AND: [] },
      { AND: { OR: [] } },
      { NOT: [] },
      { NOT: {} },
    ]) {
      const where = { id: ids[0], ...more };
      expect(await locked(write, where), JSON.stringify(more)).toEqual(await bare(write, where));
    }
  });

  test.each([...Object.entries(MANY), ...Object.entries(ONE)])(
    'what is no condition is met by none: %s',
    async (_, write) => {
      const { ids, locked, bare } = await members();
      const NONE = [null, 5, 'x', true, [], [[]], [{ id: ids[0] }], new Date(), Buffer.from('x')];
      const NESTED = [{ AND: null }, { OR: null }, { AND: 5 }, { id: ids[0], AND: undefined }];
      for (const where of [...NONE, ...NESTED] as Where[]) {
        expect(await bare(write, where), String(where)).toBe('PrismaClientValidationError');
        expect(await locked(write, where), String(where)).toBe('PrismaClientValidationError');
      }
    },
  );
});
