import { expect, inject, test } from 'vitest';
import { describeWithShop, Shop } from '../support/shop.js';
import { asked, HOSTILE, isHarmless, Operator } from './operator.js';
import { project } from './project.js';

describeWithShop('history', () => {
  const shop = new Shop();
  const operator = new Operator(shop);
  const run = (...args: string[]) => project({}, { DATABASE_URL: inject('postgres').app }).run('history', ...args);

  test('shows the last turns that committed, of which the last has its token and time', async () => {
    const { key } = await shop.product(1);
    const prisma = operator.client();
    let token = 0n;
    for (let turns = 0; turns < 18; turns++) token = await prisma.$withLock(key, (_, lock) => lock.token);
    await prisma
      .$withLock(key, () => {
        throw new Error('rolled back');
      })
      .catch(() => {});
    const { json, code } = await run(key, '--json');
    const { last, ...rest } = json as { last: Array<Record<string, unknown>> };
    expect({ code, ...rest }).toMatchObject({ code: 0, command: 'history', ok: true, key, turns: '18' });
    const known = (await prisma.$locks.history(key)).last;
    expect(last).toEqual(
      known.map(({ turn, attempt, token, admittedAt }) => ({
        turn: String(turn),
        attempt,
        token: token === undefined ? null : String(token),
        admittedAt: admittedAt?.toISOString() ?? null,
      })),
    );
    const { out } = await run(key);
    const [server, ...lines] = out.trimEnd().split('\n');
    expect(server).toBe(`postgres   ${asked().postgres}`);
    expect(lines[0]?.split(/ {2,}/)).toEqual(['TURN', 'ATTEMPT', 'TOKEN', 'ADMITTED']);
    expect(lines[1]?.split(/ {2,}/)).toEqual(['18', known[0]?.attempt, String(token), expect.stringMatching(/Z$/)]);
    expect(lines).toHaveLength(18);
    expect(lines.at(-1)).toBe(
      'The last 16 of 18 committed turns. Postgres keeps up to 16 of a key, and the token and the time of the last one only.',
    );
  });

  test('of a key that was had once says that this is all', async () => {
    await operator.client().$withLock('stock:once', () => {});
    expect((await run('stock:once')).out).toMatch(/\nThe one committed turn\. Postgres keeps up to 16 /);
  });

  test('of a key that nobody ever had says so', async () => {
    expect(await run('stock:nobody')).toMatchObject({
      code: 0,
      out: `postgres   ${asked().postgres}\nPostgres remembers no turn of stock:nobody.\n`,
    });
  });

  test.each(HOSTILE)('shows a key with %s as text', async (_, key) => {
    const { out, code } = await run('--', key);
    expect(code).toBe(0);
    expect(isHarmless(out)).toBe(true);
  });

  test('refuses what is no key', async () => {
    expect(await run('')).toMatchObject({ code: 2 });
  });
});
