import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { LockTimeoutError } from '../../src/index.js';
import { describeWithShop } from '../../test/support/shop.js';
import { ExampleWorld } from '../support.js';
import { book, SeatTakenError } from './book.js';

const PLACES = ['A1', 'A2', 'A3', 'A4', 'A5', 'A6'];

describeWithShop('the booking of seats', () => {
  const world = new ExampleWorld();

  async function newShow(): Promise<string> {
    const show = randomUUID();
    await world.client().seat.createMany({ data: PLACES.map((place) => ({ show, place })) });
    return show;
  }

  async function buyers(show: string): Promise<(string | null)[]> {
    const seats = await world.client().seat.findMany({ where: { show }, orderBy: { place: 'asc' } });
    return seats.map(({ buyer }) => buyer);
  }

  test('gives each group all of its places or none, whatever order they are named in', async () => {
    const show = await newShow();
    const clients = [world.client(), world.client()] as const;
    const groups = Array.from({ length: 12 }, (_, n) => {
      const places = PLACES.slice(n % 4, (n % 4) + 3);
      return { buyer: `group ${n}`, places: n % 2 === 0 ? places : places.reverse() };
    });
    const results = await Promise.allSettled(
      groups.map((group, n) => book(clients[n % 2 === 0 ? 0 : 1], { show, ...group })),
    );
    const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason);
    // On a busy machine the line may be longer than the wait time; nothing was done then.
    for (const reason of refused) {
      expect(reason instanceof SeatTakenError || reason instanceof LockTimeoutError, String(reason)).toBe(true);
    }
    const seated = await buyers(show);
    for (const [n, { buyer }] of groups.entries()) {
      const booked = results[n]?.status === 'fulfilled';
      expect(seated.filter((name) => name === buyer)).toHaveLength(booked ? 3 : 0);
    }
    expect(refused.length).toBeLessThan(groups.length);
  });

  test('leaves the free places free where one of them is taken', async () => {
    const show = await newShow();
    await book(world.client(), { show, places: ['A2'], buyer: 'first' });
    const second = book(world.client(), { show, places: ['A1', 'A2', 'A3'], buyer: 'second' });
    await expect(second).rejects.toMatchObject({ places: ['A2'] });
    expect(await buyers(show)).toEqual([null, 'first', null, null, null, null]);
  });

  test('does not wait for a booking of other seats', async () => {
    const show = await newShow();
    const holder = await world.client().$lock(`seat:${show}:A1`);
    await book(world.client(), { show, places: ['A2', 'A3'], buyer: 'bystander' });
    await holder.release();
    expect(await buyers(show)).toEqual([null, 'bystander', 'bystander', null, null, null]);
  });
});
