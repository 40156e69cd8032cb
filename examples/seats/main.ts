// Twelve groups want neighbouring places of a row of eight, all at once, and name them in any order.
import { randomUUID } from 'node:crypto';
import { createClient } from '../client.js';
import { book, SeatTakenError } from './book.js';

const PLACES = ['A1', 'A2', 'A3', 'A4', 'A5', 'A6', 'A7', 'A8'];
const GROUPS = 12;

const { prisma, close } = createClient();
try {
  const show = `show ${randomUUID()}`;
  await prisma.seat.createMany({ data: PLACES.map((place) => ({ show, place })) });
  await Promise.all(
    Array.from({ length: GROUPS }, async (_, n) => {
      const first = n % (PLACES.length - 2);
      const places = PLACES.slice(first, first + 3);
      if (n % 2 === 1) places.reverse();
      const buyer = `group ${n + 1}`;
      try {
        await book(prisma, { show, places, buyer });
        console.log(`${buyer} has ${places.join(', ')}`);
      } catch (error) {
        if (!(error instanceof SeatTakenError)) throw error;
        console.log(`${buyer} wanted ${places.join(', ')}: ${error.places.join(', ')} taken`);
      }
    }),
  );
  const seats = await prisma.seat.findMany({ where: { show }, orderBy: { place: 'asc' } });
  console.log(seats.map(({ place, buyer }) => `${place}: ${buyer ?? 'free'}`).join(', '));
} finally {
  await close();
}
