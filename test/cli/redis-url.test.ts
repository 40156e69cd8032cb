import { randomUUID } from 'node:crypto';
import { expect, inject, test } from 'vitest';
import { startSentinelGroup } from '../support/servers/index.js';
import { describeWithShop, Shop } from '../support/shop.js';
import { describeWithGroup } from '../support/site-suite.js';
import { Operator } from './operator.js';
import { findings } from './patient.js';
import { project } from './project.js';

describeWithShop('a Redis URL', () => {
  const shop = new Shop();
  const UNREADABLE = /The Redis URL cannot be read: check .* percent-encoded/;

  test.each([
    ['a # in its password', 'redis://:se#cret@127.0.0.1:6379'],
    ['a port that is none', 'redis://:secret@127.0.0.1:99999'],
    ['a % in its login', 'redis://:secret%zz@127.0.0.1:6379'],
    ['a database that is no number', 'SERVER/secret'],
    ['a database that is no number, in its query', 'SERVER?db=secret'],
  ])('with %s cannot be read, and nothing of it is shown', async (_, url) => {
    const env = { REDIS_URL: url.replace('SERVER', inject('redis').url ?? '') };
    for (const command of [['ls'], ['unlock', 'stock:1']]) {
      const { code, err, out } = await new Operator(shop).runWith(env, ...command);
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(UNREADABLE) });
      expect(err + out).not.toMatch(/cret|:\/\//);
    }
  });

  test.each([
    ['with another behind it', 'redis://:secret@127.0.0.1,redis://:secret@127.0.0.1', 'has a second URL in it'],
    [
      'that the next line of a .env is glued to',
      '"redis://:secret@h:6379"DATABASE_URL=postgresql://u:secret@h/d',
      'has a',
    ],
    ['with a quotation mark', '"redis://:secret@127.0.0.1', 'begins or ends with a quotation mark'],
  ])('%s is malformed, and nothing of it is shown', async (_, url, what) => {
    const { code, err, out } = await new Operator(shop).runWith({ REDIS_URL: url }, 'ls');
    const message = `The Redis URL is malformed: it ${what}`;
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(message) });
    expect(err).toContain('give each variable a line of its own there');
    expect(err + out).not.toMatch(/cret|:\/\//);
  });

  test.each(['secret.host:6379', 'secret.host', ':secret@host:6379', 'http://secret.host:6379'])(
    'without the scheme is told what a URL looks like, and nothing of it is shown: %s',
    async (url) => {
      for (const command of ['ls', 'doctor']) {
        const { code, err, out } = await new Operator(shop).runWith({ REDIS_URL: url }, command);
        expect(code).toBe(1);
        expect(err + out).toMatch(
          /The Redis URL must begin with redis:\/\/.*\s+(→ )?Write it as redis:\/\/<host>:<port>/,
        );
        expect(err + out).not.toMatch(/secret/);
      }
    },
  );

  test('of the database that is malformed is named as such, and nothing of it is shown', async () => {
    const urls = [
      '"postgresql://user:secret@h:5432/shop"REDIS_URL=redis://:secret@h',
      'postgresql://user:secret@h:5432/shopREDIS_URL=redis://:secret@h',
      'postgresql://user:secret@h:5432/shop"',
    ];
    for (const url of urls) {
      for (const command of ['doctor', 'gc', 'ls']) {
        const { code, err, out } = await project({}, { DATABASE_URL: url, REDIS_URL: inject('redis').url }).run(
          command,
        );
        expect(code).toBe(1);
        expect(err + out).toContain('The database URL is malformed: it ');
        expect(err + out).not.toMatch(/cret|:\/\/|Accelerate/);
      }
    }
  });

  test('that is malformed: doctor advises what helps, and not to check the network', async () => {
    const env = { DATABASE_URL: 'postgresql://h/d"', REDIS_URL: `${inject('redis').url}"` };
    const found = findings(await project({}, env).run('doctor', '--json'));
    const remedy = 'If it comes from a .env, give each variable a line of its own there.';
    expect(found).toMatchObject([
      { server: 'postgres', check: 'connection', status: 'fault', remedy },
      { server: 'redis', check: 'connection', status: 'fault', remedy },
    ]);
    const foreign = { DATABASE_URL: 'mysql://h/d', REDIS_URL: 'http://h' };
    const ran = findings(await project({}, foreign).run('doctor', '--json'));
    expect(ran.map(({ server, remedy }) => [server, remedy])).toEqual([
      ['postgres', 'Write it as postgresql://<user>:<password>@<host>:<port>/<database>.'],
      ['redis', expect.stringMatching(/^Write it as redis:\/\/<host>:<port>, or with a login redis:\/\/<user>:/)],
    ]);
  });

  test('of the database with another protocol is refused; Accelerate is named where it is asked for', async () => {
    const refusal = async (DATABASE_URL: string) => (await project({}, { DATABASE_URL }).run('gc')).err;
    expect(await refusal('mysql://h/d')).toMatch(/must begin with postgresql:\/\/.* itself\. Write it as postgresql:/);
    expect(await refusal('prisma://accelerate.prisma-data.net')).toMatch(
      /What Prisma Accelerate serves cannot be used\. Write it as/,
    );
  });

  test('that cannot be read is a finding of doctor, beside those of Postgres', async () => {
    const ran = await new Operator(shop).runWith({ REDIS_URL: 'redis://:se#cret@h:6379' }, 'doctor', '--json');
    expect(findings(ran).some(({ server, check }) => server === 'postgres' && check === 'version')).toBe(true);
    const ofRedis = findings(ran).filter(({ server }) => server === 'redis');
    const message = expect.stringMatching(UNREADABLE);
    expect(ofRedis).toMatchObject([{ check: 'connection', status: 'fault', message }]);
  });

  test('with a database that the server does not have is refused, whatever would be done in another one', async () => {
    const key = `stock:${randomUUID()}`;
    const operator = new Operator(shop);
    const client = operator.client();
    await using handle = await client.$lock(key);
    const env = { REDIS_URL: `${inject('redis').url}/99999` };
    const message = expect.stringMatching(/Redis at \S+: ERR .*(DB|database) index/i);
    for (const command of [['ls'], ['unlock', key]]) {
      expect(await operator.runWith(env, ...command)).toMatchObject({ code: 1, err: message });
    }
    expect((await client.$locks.inspect(key)).token).toBe(handle.token);
    const found = findings(await operator.runWith(env, 'doctor', '--json'));
    expect(found.filter(({ server }) => server === 'redis')).toMatchObject([{ check: 'connection', message }]);
  });

  describeWithGroup('of a Sentinel', startSentinelGroup, (group) => {
    test('is refused, with the way to the primary', async () => {
      const { site } = group();
      if (site.kind !== 'sentinel') throw new Error('no Sentinels');
      const [one, other] = site.sentinels.map(({ host, port }) => `redis://${host}:${port}`) as [string, string];
      const message = expect.stringMatching(/is a Sentinel, .* SENTINEL get-master-addr-by-name/);
      for (const command of [['ls'], ['unlock', 'stock:1'], ['ls', '--redis-url', one, '--redis-url', other]]) {
        const ran = await new Operator(shop).runWith({ REDIS_URL: one }, ...command);
        expect(ran).toMatchObject({ code: 1, err: message });
      }
      const found = findings(await new Operator(shop).runWith({ REDIS_URL: one }, 'doctor', '--json'));
      expect(found.filter(({ server, status }) => server === 'redis' && status === 'fault')).toMatchObject([
        { check: 'mode', message: expect.stringContaining('Sentinel') },
      ]);
    });
  });
});
