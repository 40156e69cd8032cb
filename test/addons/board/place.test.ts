import { expect, test } from 'vitest';
import { DatabasePlace } from '../../../src/addons/board/place.js';
import type { Finding } from '../../../src/addons/board/source.js';

const WELL: readonly Finding[] = [{ server: 'postgres', check: 'connection', status: 'ok', message: '' }];
const AWAY: readonly Finding[] = [{ server: 'postgres', check: 'connection', status: 'fault', message: '' }];

/** The place of a server that gives these answers, one after the other. */
function placeOf(...answers: ReadonlyArray<object | Error>) {
  let asked = 0;
  const place = new DatabasePlace(async () => {
    const answer = answers[asked++];
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error('asked too often');
    return [answer];
  });
  return { place, asked: () => asked };
}

test.each([
  [{ database: 'shop', host: '10.0.0.7', port: 5432 }, '10.0.0.7:5432/shop'],
  [{ database: 'shop', host: 'fd00::7', port: 5433 }, '[fd00::7]:5433/shop'],
  [{ database: 'shop', host: null, port: null }, 'Unix socket/shop'],
])('the database %o is shown as %s', async (answer, shown) => {
  const { place } = placeOf(answer);
  expect(place.shown).toBeUndefined();
  await place.follow(WELL);
  expect(place.shown).toBe(shown);
});

test('Postgres is asked once for its place, and again after it was away, when another may answer there', async () => {
  const [old, next] = ['10.0.0.7', '10.0.0.8'].map((host) => ({ database: 'shop', host, port: 5432 }));
  const { place, asked } = placeOf(old as object, new Error('it broke'), next as object);
  for (let checks = 0; checks < 3; checks++) await place.follow(WELL);
  expect(asked()).toBe(1);
  await place.follow(AWAY);
  // Which one does not answer is what somebody wants to know then.
  expect([asked(), place.shown]).toEqual([1, '10.0.0.7:5432/shop']);
  for (let checks = 0; checks < 3; checks++) await place.follow(WELL);
  expect([asked(), place.shown]).toEqual([3, '10.0.0.8:5432/shop']);
});
