import { once } from 'node:events';
import net from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { LockUnavailableError } from '../../src/base/errors.js';
import { Actor, someKey } from '../lease/actors.js';
import { eventually } from '../support/eventually.js';
import { describeWithRedis } from '../support/redis-suite.js';
import { freePort, type RedisServer, startRedis } from '../support/servers/index.js';

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
      'see to the replicas',
    ],
    ['a user without EVALSHA', acl('+@all', '-evalsha', '-eval'), ['PING'], 'NOPERM', '"Rights" in the README', less],
    ['a user without a command in a script', acl('+@all', '-get'), ['PING'], '', '"Rights" in the README', less],
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

  test('a wrong password is told, and not shown', async () => {
    const error = await refusal(redis().url, { username: 'nobody', password: 'wrong-secret', maxRetriesPerRequest: 0 });
    expect(error.message).not.toContain('wrong-secret');
    expect(error.message).toMatch(/WRONGPASS|NOAUTH|status is/);
  });
});

describeWithRedis(
  'a server without scripts',
  (redis) => {
    test('the error names them, and repeats no arguments', async () => {
      const error = await refusal(redis().url);
      expect(error.message).toMatch(/unknown command.*EVALSHA and EVAL under their own names/);
      expect(error.message.replace(String(error.key), '')).not.toContain(String(error.key));
    });
  },
  { args: ['--rename-command', 'EVALSHA', ''] },
);

const CLUSTER = { args: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'] };

describeWithRedis(
  'a node of a Cluster, by its own address',
  (redis) => {
    test('the error says that keys are not served, or that it is the address of a node', async () => {
      expect((await refusal(redis().url)).message).toMatch(/CLUSTERDOWN.*see to its nodes/);
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

describeWithRedis('an address that moves to another server, as those of managed ones do', (redis) => {
  let other: RedisServer;
  beforeAll(async () => {
    other = await startRedis();
  });
  afterAll(() => other.stop());

  test('with reconnectOnError the client moves with it when the former primary refuses', async () => {
    let target = redis().port;
    const address = net.createServer((client) => {
      const server = net.connect(target, '127.0.0.1');
      client.pipe(server).pipe(client);
      client.on('error', () => server.destroy());
      server.on('error', () => client.destroy());
    });
    address.listen(await freePort(), '127.0.0.1');
    await once(address, 'listening');
    onTestFinished(() => void address.close());
    const { port } = address.address() as net.AddressInfo;
    const holder = new Actor({
      url: `redis://127.0.0.1:${port}`,
      redis: { reconnectOnError: (error) => error.message.includes('READONLY') },
    });
    await holder.acquire(someKey());
    const admin = new Redis(redis().url);
    onTestFinished(async () => {
      // A primary that ends waits for its replicas.
      await admin.call('REPLICAOF', 'NO', 'ONE');
      admin.disconnect();
    });
    target = other.port;
    await admin.call('REPLICAOF', '127.0.0.1', String(other.port));
    await holder.acquire(someKey(), { waitTime: 10_000 });
  });
});
