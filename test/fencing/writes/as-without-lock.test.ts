import { PrismaPg } from '@prisma/adapter-pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Prisma, PrismaClient } from '../../generated/fence/client.js';
import { type FenceClient, type FenceTx, FenceWorld } from '../../support/fence-world.js';
import { describeWithShop } from '../../support/shop.js';

/** An extension that changes no operation. Below it, a lock's writes pass a hook. */
function withResult(client: FenceClient): FenceClient {
  const twice = { needs: { value: true }, compute: (word: { value: number }) => word.value * 2 };
  return client.$extends({ result: { word: { twice } } }) as unknown as FenceClient;
}

const CLIENTS: Record<string, (client: FenceClient) => FenceClient> = {
  'a client': (client) => client,
  'an extended client': withResult,
};

/** How work comes to its client. */
const PLACES: Record<string, <R>(client: FenceClient, work: (tx: FenceTx) => Promise<R>) => Promise<R>> = {
  'outside of transactions': (client, work) => work(client as unknown as FenceTx),
  'in $transaction': (client, work) => client.$transaction((tx) => work(tx as unknown as FenceTx)),
  'in $withLock': (client, work) => client.$withLock('word', work),
};
const CELLS = Object.keys(CLIENTS).flatMap((client) => Object.keys(PLACES).map((place) => [client, place] as const));

class Price {
  readonly cents: number;
  constructor(cents: number) {
    this.cents = cents;
  }
  toJSON(): unknown {
    return `${this.cents / 100} EUR`;
  }
}
class Wrapped {
  readonly #value: unknown;
  constructor(value: unknown) {
    this.#value = value;
  }
  toJSON(): unknown {
    return this.#value;
  }
}
const VALUES: Record<string, unknown> = {
  'an object with toJSON': new Price(1250),
  'one in a field': { price: new Price(1250), at: [new Price(5)] },
  'a URL': new URL('http://example.com/'),
  'one that gives a Date': new Wrapped(new Date(5)),
  'one that gives another one': new Wrapped(new Price(5)),
  'one that gives such in fields': new Wrapped({ at: new Date(5), price: new Price(5), none: undefined }),
  'one that gives a Decimal and bytes': new Wrapped({ share: new Prisma.Decimal('4.0'), mark: Buffer.from('x') }),
  'one that gives a list': new Wrapped([new Price(5), new Date(5)]),
};

describeWithShop('fencedLock changes nothing of what Prisma does', () => {
  for (const policy of ['allow', undefined] as const) {
    const guard = policy === undefined ? 'no guard' : 'the guard';
    describe(`with ${guard}`, () => {
      const world = new FenceWorld(`fence_as_without_${policy ?? 'none'}`, policy);
      let bare: PrismaClient;
      beforeAll(() => {
        bare = new PrismaClient({ adapter: new PrismaPg({ connectionString: world.url }) });
      });
      afterAll(() => bare.$disconnect());

      let names = 0;
      const newWord = () => bare.word.create({ data: { name: `word ${++names}`, value: 1 } });
      const client = (kind: string) => (CLIENTS[kind] as (client: FenceClient) => FenceClient)(world.client());
      const at = (place: string) => PLACES[place] as (typeof PLACES)[string];

      test.each(CELLS.flatMap(([kind, place]) => Object.keys(VALUES).map((value) => [kind, place, value] as const)))(
        '%s, %s: stores %s as Prisma stores it',
        async (kind, place, value) => {
          const data = { data: VALUES[value] as never };
          const [{ id: ours }, { id: theirs }] = [await newWord(), await newWord()];
          await at(place)(client(kind), (tx) => tx.word.update({ where: { id: ours }, data }));
          await bare.word.update({ where: { id: theirs }, data });
          const stored = (id: number) => bare.word.findUniqueOrThrow({ where: { id } });
          expect((await stored(ours)).data).toEqual((await stored(theirs)).data);
        },
      );

      const inTransactions = CELLS.filter(([, place]) => place !== 'outside of transactions');
      test.each(inTransactions)('%s, %s: executes what is called together in its order', async (kind, place) => {
        const { id } = await newWord();
        const [, [raw], row] = await at(place)(client(kind), (tx) =>
          Promise.all([
            tx.word.update({ where: { id }, data: { value: 5 } }),
            tx.$queryRaw<[{ value: number }]>`SELECT value FROM people."Word" WHERE id = ${id}`,
            // Without the guard, a write under a lock passes checks, and a read behind it may be sent before it.
            place === 'in $withLock' && policy === undefined
              ? { value: 5 }
              : tx.word.findUniqueOrThrow({ where: { id } }),
          ]),
        );
        expect([raw.value, row.value]).toEqual([5, 5]);
      });

      test.each(CELLS)('%s, %s: refuses `null` in place of the arguments', async (kind, place) => {
        const { id } = await newWord();
        await expect(at(place)(client(kind), (tx) => tx.word.deleteMany(null as never))).rejects.toThrow();
        expect(await bare.word.count({ where: { id } })).toBe(1);
      });
    });
  }
});
