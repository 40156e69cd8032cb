// What ships, as the compiler makes it: tsx gives every function a name of its own, which costs time and heap.
const part = (file: string) => import(new URL(`../dist/${file}`, import.meta.url).href);

export const { fencedLock } = (await part('index.js')) as typeof import('../src/index.js');

export const { fencedLocks: pgLocks } = (await part('faces/pg.js')) as typeof import('../src/faces/pg.js');
export const { fencedLocks: kyselyLocks } = (await part('faces/kysely.js')) as typeof import('../src/faces/kysely.js');
export const { fencedLocks: drizzleLocks } = (await part(
  'faces/drizzle.js',
)) as typeof import('../src/faces/drizzle.js');

/** The waiting room without what stands on it. */
export async function shippedRoom() {
  const [clock, renewal, room, store] = await Promise.all(
    ['base/clock.js', 'waiting/renewal.js', 'waiting/room.js', 'redis/store.js'].map(part),
  );
  return {
    Deadline: clock.Deadline as typeof import('../src/base/clock.js').Deadline,
    Renewal: renewal.Renewal as typeof import('../src/waiting/renewal.js').Renewal,
    WaitingRoom: room.WaitingRoom as typeof import('../src/waiting/room.js').WaitingRoom,
    RedisStore: store.RedisStore as typeof import('../src/redis/store.js').RedisStore,
  };
}
