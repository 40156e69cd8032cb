import { expect, test } from 'vitest';
import { LockUnavailableError } from '../../src/index.js';
import { eventually } from '../../test/support/eventually.js';
import { describeWithShop } from '../../test/support/shop.js';
import { ExampleWorld } from '../support.js';
import { whenDue, writeReport } from './report.js';

/** Weeks: the next interval does not begin while a test runs. */
const LONG = 2 ** 31 - 1;

describeWithShop('the nightly report', () => {
  const world = new ExampleWorld();

  /** Servers that are slow to answer, on a busy machine, are asked again. */
  function answered(...report: Parameters<typeof writeReport>) {
    return eventually('an answer', () =>
      writeReport(...report).catch((error: unknown) => {
        if (error instanceof LockUnavailableError) return undefined;
        throw error;
      }),
    );
  }

  test('is written once by many who come at once, and by nobody after that', async () => {
    const clients = [world.client(), world.client(), world.client()];
    const nights = { interval: LONG, offset: 0 };
    const results = await Promise.all([...clients, ...clients].map((prisma) => answered(prisma, nights)));
    expect(results.filter(({ ran }) => ran)).toHaveLength(1);
    for (const prisma of clients) {
      const late = await answered(prisma, nights);
      expect(late).toMatchObject({ ran: false, next: expect.any(Date) });
    }
    expect(await world.client().report.count()).toBe(1);
  });

  test('who is told that it has run calls again when it is due', async () => {
    const prisma = world.client();
    const end = new AbortController();
    let ran = 0;
    const loop = whenDue(
      async () => {
        const result = await writeReport(prisma, { interval: 500, offset: 0 });
        if (result.ran) ran++;
        return result;
      },
      end.signal,
      { onError: () => {}, pauseAfterError: 50 },
    );
    await eventually('it has run three times', async () => ran >= 3, { within: 25_000 });
    end.abort();
    await loop;
  });

  test('an error is told, and the loop goes on until it is ended', async () => {
    const errors: unknown[] = [];
    const end = new AbortController();
    const failure = new Error('the database is away');
    const told = (error: unknown) => {
      errors.push(error);
      end.abort();
    };
    await whenDue(() => Promise.reject(failure), end.signal, { onError: told });
    expect(errors).toEqual([failure]);
  });
});
