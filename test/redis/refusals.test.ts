import { once } from 'node:events';
import { Redis, type RedisOptions } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { LockUnavailableError } from '../../src/base/errors.js';
import { RedisStore } from '../../src/redis/store.js';
import { eventually } from '../support/eventually.js';
import type { RedisSite } from '../support/redis-site.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { freePort, type RedisServer, startRedis, startSentinelGroup } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';
import { Actor, PREFIX, someKey } from '../waiting/actors.js';
import { claimOf } from '../waiting/claims.js';
import { storeActor } from './store-actor.js';
import { type ClientOptions, ClusterActor } from './topology/cluster-actor.js';

type Options = Omit<RedisOptions, 'replyMapping'>;

/** What a caller is told who wants a key from this server. */
async function refusal(url: string, options: Options = {}): Promise<LockUnavailableError> {
  const contender = new Actor({ url, redis: options });
  const since = performance.now();
  const error = await contender.acquire(someKey(), { waitTime: 300 }).catch((error: unknown) => error);
  expect(performance.now() - since).toBeLessThan(5_000);
  expect(error).toBeInstanceOf(LockUnavailableError);
  return error as LockUnavailableError;
}

describeWithRedis('a server that refuses', (redis) => {
  let admin: Redis;
  beforeAll(() => {
    admin = new Redis(redis().url);
  });
  afterAll(() => admin.disconnect());

  const acl = (...rights: string[]) => ['ACL', 'SETUSER', 'less', 'reset', 'on', '>password', '~*', '&*', ...rights];
  const less = { username: 'less', password: 'password' };

  test.each<[what: string, set: string[], back: string[], said: string, advice: string, as?: Options]>([
    ['a replica', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE'], 'READONLY', 'connect to the primary'],
    [
      'one that has too few replicas',
      ['CONFIG', 'SET', 'min-replicas-to-write', '1'],
      ['CONFIG', 'SET', 'min-replicas-to-write', '0'],
      'NOREPLICAS',
      'check the replicas',
    ],
    ['a user without EVALSHA', acl('+@all', '-evalsha', '-eval'), ['PING'], 'NOPERM', 'docs/rights.md', less],
    ['a user without a command in a script', acl('+@all', '-getrange'), ['PING'], '', 'docs/rights.md', less],
  ])('%s: the error says what was said, and what to do', async (_, set, back, said, advice, as) => {
    const [command = '', ...args] = set;
    await admin.call(command, ...args);
    onTestFinished(async () => {
      const [command = '', ...args] = back;
      await admin.call(command, ...args);
    });
    const error = await refusal(redis().url, as);
    expect(error.message).toContain(said);
    expect(error.message).toContain(advice);
    expect(error.message).toContain((error.cause as Error).message);
  });

  const denied: Record<string, [login: Options, said: RegExp]> = {
    'a wrong password': [
      { username: 'somebody', password: 'wrong-secret' },
      /^Redis refused the login .*: WRONGPASS.*[^.] \(check the user/,
    ],
    'no password': [{}, /^Redis refused the login .*: NOAUTH.*[^.] \(check the user/],
    'a user without rights': [
      { username: 'less', password: 'password' },
      /NOPERM.*needs more rights: see node_modules\/prisma-extension-fenced-lock\/docs\/rights\.md\)/,
    ],
  };

  test.each(Object.entries(denied))('%s is told at once, and not shown', async (_, [login, said]) => {
    await admin.call('ACL', 'SETUSER', 'default', 'resetpass', '>right');
    await admin.call(...(acl('+@all', '-evalsha', '-eval') as ['ACL', ...string[]]));
    onTestFinished(async () => {
      await admin.call('ACL', 'SETUSER', 'default', 'nopass');
    });
    const contender = new Actor({ url: redis().url, redis: login });
    // The second one comes while the client has no connection, and the third where the first one waits.
    for (let turn = 0; turn < 2; turn++) {
      const refused = [1, 2].map(() => contender.acquire('stock:1').catch((error: unknown) => error));
      for (const error of await Promise.all(refused)) {
        expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', message: expect.stringMatching(said) });
        expect((error as Error).message).not.toMatch(/wrong-secret|somebody|\bless\b|redis:\/\//);
        // It was refused at once, and the server is up.
        expect((error as Error).message).not.toMatch(/in time|\.\.|\. \(check/);
      }
    }
  });

  test('who was denied is let in when it has been mended', async () => {
    await admin.call(...(acl('+@all', '-evalsha', '-eval') as ['ACL', ...string[]]));
    const contender = new Actor({ url: redis().url, redis: less });
    await expect(contender.acquire('stock:1')).rejects.toThrow('NOPERM');
    await admin.call('ACL', 'SETUSER', 'less', '+evalsha', '+eval');
    await contender.acquire('stock:1');
  });
});

describe('a port where nobody listens', () => {
  test('is told when the wait time is over', async () => {
    const error = await refusal(`redis://127.0.0.1:${await freePort()}`);
    expect(error.message).toContain('ECONNREFUSED');
    expect(error.message).toMatch(/ within \d+ ms: there is no connection/);
    expect(error.message).toContain('nothing listens there: start the server');
  });

  test.each(['nobody', 'the application'])(
    'is told in one warning before, unless somebody listens: %s',
    async (who) => {
      const warnings: Array<Error & { code?: string }> = [];
      const heard = (warning: Error) => void warnings.push(warning);
      process.on('warning', heard);
      onTestFinished(() => void process.off('warning', heard));
      const redis = new Redis(await freePort(), '127.0.0.1', { retryStrategy: () => 20 });
      onTestFinished(() => redis.disconnect());
      if (who === 'the application') redis.on('error', () => {});
      const stores = ['one', 'two'].map(
        (keyPrefix) => new RedisStore(redis, { keyPrefix, commandTimeout: 500 }, () => {}),
      );
      for (let failed = 0; failed < 4; failed++) await new Promise((resolve) => redis.once('close', resolve));
      const ours = warnings.filter(({ code }) => code === 'FENCED_LOCK_REDIS').map(({ message }) => message);
      expect(ours).toEqual(
        who === 'nobody' ? [expect.stringMatching(/cannot connect: .*ECONNREFUSED.* LOCK_UNAVAILABLE/)] : [],
      );
      await Promise.all(stores.map((store) => store.close()));
    },
  );
});

describeWithRedis('a server without the database of the URL', (redis) => {
  test('is told in one warning: the locks are in database 0', async () => {
    const warning = new Promise<Error>((resolve) => process.once('warning', resolve));
    const client = new Redis(`${redis().url}/99`);
    onTestFinished(() => client.disconnect());
    const store = new RedisStore(client, { keyPrefix: PREFIX, commandTimeout: 500 }, () => {});
    expect((await warning).message).toMatch(/could not select the database of its URL: .* Its locks are in database 0/);
    expect(await client.call('CLIENT', 'INFO')).toMatch(/ db=0 /);
    await store.close();
  });
});

const CLUSTER = { args: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'] };

describeWithRedis(
  'a node of a Cluster, by its own address',
  (redis) => {
    test('the error says that keys are not served, or that it is the address of a node', async () => {
      expect((await refusal(redis().url)).message).toMatch(/CLUSTERDOWN.*check its nodes/);
      const other = await startRedis(CLUSTER);
      onTestFinished(() => other.stop());
      const [node, owner] = [new Redis(redis().url), new Redis(other.url)];
      onTestFinished(() => [node, owner].forEach((each) => void each.disconnect()));
      await owner.cluster('ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => slot));
      await owner.cluster('MEET', redis().host, redis().port);
      await eventually('it is in the Cluster', async () => String(await node.cluster('INFO')).includes('state:ok'));
      expect((await refusal(redis().url)).message).toMatch(/MOVED.*new Cluster/);
    });
  },
  CLUSTER,
);

describe('a client of a Cluster that cannot connect', () => {
  /** What is said of a look, once the client has tried. */
  async function refusalOf(node: RedisServer, client: ClientOptions = {}): Promise<string> {
    const { store, redis } = new ClusterActor({ nodes: [node] }, { client, store: { commandTimeout: 500 } });
    await once(redis, 'error');
    const error = await store.acquire(claimOf(someKey())).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(Error);
    return (error as Error).message;
  }

  describeWithRedis('to a server that is none', (redis) => {
    test('the error says what the server said, and what to do', async () => {
      const message = await refusalOf(redis());
      expect(message).toMatch(/status is "\w+": .*cluster support disabled.*new Redis/);
    });
  });

  describeWithRedis(
    'with a wrong password',
    (redis) => {
      test('the error says so, and does not show it', async () => {
        const message = await refusalOf(redis(), { redisOptions: { username: 'nobody', password: 'wrong-secret' } });
        expect(message).toMatch(/WRONGPASS.*redisOptions/);
        expect(message).not.toContain('wrong-secret');
      });
    },
    CLUSTER,
  );
});

describeWithGroup('Sentinel', startSentinelGroup, (group) => {
  const site = () => group().site as Extract<RedisSite, { kind: 'sentinel' }>;

  test('a Sentinel by its own address: the error says how to give it', async () => {
    const [sentinel] = site().sentinels;
    const error = await refusal(`redis://${sentinel?.host}:${sentinel?.port}`);
    expect(error.message).toMatch(/unknown command.*new Redis\(\{ name, sentinels \}\)/);
  });

  test('of a frozen master the error names failoverDetector, where it is not set', async () => {
    const stores = [false, true].map((failoverDetector) => {
      const redis = new Redis({ name: site().name, sentinels: [...site().sentinels], failoverDetector });
      return { redis, store: storeActor(redis, { commandTimeout: 200 }).store };
    });
    for (const { redis } of stores) await redis.ping();
    const master = await group().ownerOf('');
    master.freeze();
    onTestFinished(() => master.thaw());
    const [without, having] = await Promise.all(
      stores.map(({ store }) => store.acquire(claimOf(someKey())).catch(String)),
    );
    expect(without).toMatch(/did not answer.*"ready".*failoverDetector: true/);
    expect(having).toMatch(/did not answer/);
    expect(having).not.toContain('failoverDetector');
  });
});

describe.each<[command: string, advice: RegExp, ask: (store: RedisStore) => Promise<unknown>]>([
  ['EVALSHA', /EVALSHA and EVAL under these names; for a Sentinel/, (store) => store.acquire(claimOf('a key'))],
  ['SUBSCRIBE', /`wake: 'poll'`/, (store) => store.watch(someKey(), () => {})],
  ['SCAN', /SCAN.*`inspect\(key\)`/, (store) => store.list()],
  [
    'LPOS',
    /the commands in .*rights\.md under their names/,
    async (store) => {
      const { key } = claimOf(someKey());
      await store.acquire(claimOf(key));
      await store.acquire(claimOf(key), { enter: 1_000 });
    },
  ],
])('a server that does not have %s', (command, advice, ask) => {
  describeWithRedis(
    'under that name',
    (redis) => {
      test('the error says what to do about this command and no other, and repeats no arguments', async () => {
        const { store } = storeActor(new Redis(redis().url), { commandTimeout: 500 });
        const said = await ask(store).catch((error: unknown) => error);
        expect(String(said)).toMatch(advice);
        expect(/EVALSHA|Sentinel/i.test(String(said))).toBe(command === 'EVALSHA');
        expect(String(said)).not.toContain('a key');
      });
    },
    { args: ['--rename-command', command, ''] },
  );
});
