import type { ExampleClient } from '../client.js';

/** Thrown inside the lock, it rolls everything back. */
export class SeatTakenError extends Error {
  override readonly name = 'SeatTakenError';

  constructor(readonly places: readonly string[]) {
    super(`The places ${places.join(', ')} are taken.`);
  }
}

const seatKey = (show: string, place: string): string => `seat:${show}:${place}`;

/**
 * Books all places or none. Each seat is a key: bookings of other seats do not wait, and bookings that share a seat come
 * one after the other, in whichever order they name their seats.
 *
 * @throws SeatTakenError if one of them has a buyer. @throws LockTimeoutError if a seat was not free to look at in time.
 */
export function book(
  prisma: ExampleClient,
  { show, places, buyer }: { show: string; places: readonly string[]; buyer: string },
): Promise<void> {
  const keys = places.map((place) => seatKey(show, place));
  return prisma.$withLock(keys, async (tx) => {
    const seats = await tx.seat.findMany({ where: { show, place: { in: [...places] } } });
    const unknown = places.filter((place) => !seats.some((seat) => seat.place === place));
    if (unknown.length > 0) throw new Error(`The show ${show} has no places ${unknown.join(', ')}.`);
    const taken = seats.filter((seat) => seat.buyer !== null).map(({ place }) => place);
    if (taken.length > 0) throw new SeatTakenError(taken);
    await tx.seat.updateMany({ where: { show, place: { in: [...places] } }, data: { buyer } });
  });
}
