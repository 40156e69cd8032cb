import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { freePort } from '../support/servers/index.js';
import { describeWithShop, gate, Shop } from '../support/shop.js';
import { as, Operator, PASSWORD } from './operator.js';

describeWithShop('unlock, where it is refused', () => {
  const shop = new Shop();
  const role = `unlock_${randomUUID().replaceAll('-', '')}`;
  const app = new URL(inject('postgres').app).username;
  const stranger = () => ({ DATABASE_URL: as(inject('postgres').app, role) });
  beforeAll(() => shop.admin.query(`CREATE ROLE ${role} LOGIN PASSWORD '${PASSWORD}'`));
  afterAll(() => shop.admin.query(`DROP ROLE ${role}`));

  /** Runs it while somebody is at work under the key; says whether that was disturbed. */
  async function beside(operator: Operator, env: Record<string, string>) {
    const { key } = await shop.product(1);
    const client = operator.client();
    await client.$withLock(key, () => {});
    const [inside, goOn] = [gate(), gate()];
    // A handle has its lease longer than a transaction that is ended.
    await using handle = await client.$lock(key);
    const work = handle
      .$transaction(async () => {
        inside.open();
        await goOn.opened;
      })
      .then(
        () => 'committed',
        () => 'ended',
      );
    await inside.opened;
    const before = await client.$locks.inspect(key);
    const ran = await operator.runWith(env, 'unlock', key, '--json');
    const after = await client.$locks.inspect(key);
    goOn.open();
    return { ran, before, after, work: await work };
  }

  test('a role that may not end the holder is told what it lacks, and has changed nothing; with it, it may', async () => {
    const { ran, before, after, work } = await beside(new Operator(shop), stranger());
    expect(ran).toMatchObject({ code: 1, json: { ok: false } });
    expect(ran.err).toMatch(/could not be locked in time.*pg_signal_backend and pg_read_all_stats/);
    expect(ran.err + ran.out).not.toMatch(/secret-of-locks|:\/\//);
    expect([after.token, after.holder, work]).toEqual([before.token, before.holder, 'committed']);
    for (const grants of ['pg_read_all_stats, pg_signal_backend', app]) {
      await shop.admin.query(`GRANT ${grants} TO ${role}`);
      const { ran, after, before, work } = await beside(new Operator(shop), stranger());
      await shop.admin.query(`REVOKE ${grants} FROM ${role}`);
      expect(ran.json).toMatchObject({ ok: true, ended: [before.transaction?.pid], leaseTaken: true });
      expect([after.holder, work]).toEqual([undefined, 'ended']);
    }
  });

  test('with Redis out of reach nothing is done', async () => {
    const operator = new Operator(shop);
    const redis = `redis://:${PASSWORD}@127.0.0.1:${await freePort()}`;
    const { ran, before, after, work } = await beside(operator, { REDIS_URL: redis });
    expect(ran).toMatchObject({ code: 1, err: expect.stringMatching(/Redis at 127\.0\.0\.1:\d+ cannot be reached/) });
    expect(ran.err + ran.out).not.toMatch(/secret-of-locks|:\/\//);
    expect([after.token, work]).toEqual([before.token, 'committed']);
  });

  test('with the lease refused it says what is done already', async () => {
    const operator = new Operator(shop);
    const rights = ['~*', '&*', '+info', '+hello', '+select', '+evalsha', '+eval', '+getrange', '+pttl', '+llen'];
    await shop.redis().call('ACL', 'SETUSER', 'cli-unlock', 'reset', 'on', `>${PASSWORD}`, ...rights);
    const url = as(inject('redis').url ?? '', 'cli-unlock');
    const { ran, before, after, work } = await beside(operator, { REDIS_URL: url });
    await shop.redis().call('ACL', 'DELUSER', 'cli-unlock');
    expect(ran).toMatchObject({
      code: 1,
      err: expect.stringMatching(/Redis at \S+: .*user.* the token raised, but the lease stays/),
    });
    expect(ran.err + ran.out).not.toMatch(/secret-of-locks|:\/\//);
    expect(after.token).toBeGreaterThan(before.token ?? 0n);
    expect(work).toBe('ended');
  });
});
