import { readFileSync } from 'node:fs';
import { Redis, type RedisOptions } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { LockUnavailableError } from '../../src/base/errors.js';
import { SubscriberConnection } from '../../src/redis/subscriber/subscriber-connection.js';
import { eventually } from '../support/eventually.js';
import { freePort, type RedisServer, startRedis } from '../support/servers/index.js';
import { describeWithShop } from '../support/shop.js';
import { Authority, type Certificate } from '../support/tls.js';
import { Actor, receivers, someKey } from '../waiting/actors.js';

type Tls = NonNullable<RedisOptions['tls']>;

describeWithShop('Redis over TLS', () => {
  let authority: Authority;
  let stranger: Authority;
  let port: number;
  let server: RedisServer;
  let admin: Redis;
  let ca: string;

  beforeAll(async () => {
    authority = new Authority();
    stranger = new Authority();
    const { key, cert } = authority.issue('server');
    port = await freePort();
    const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', authority.ca];
    server = await startRedis({ args: ['--tls-port', String(port), ...files] });
    admin = new Redis(server.url);
    ca = readFileSync(authority.ca, 'utf8');
  });
  afterAll(async () => {
    admin?.disconnect();
    await server?.stop();
    authority?.remove();
    stranger?.remove();
  });
  beforeEach((context) => {
    // In a container it has not got the files, and somebody else's has others.
    if (!('dir' in server)) context.skip('needs redis-server or valkey-server on the PATH');
  });

  const makeActor = (tls: Tls) => new Actor({ url: `rediss://127.0.0.1:${port}`, redis: { tls } });

  /** A turn that is waited for, and handed over by a wake-up. */
  async function handOver(tls: Tls): Promise<void> {
    const [holder, contender] = [makeActor(tls), makeActor(tls)];
    const key = someKey();
    const turn = await holder.acquire(key);
    const waiting = contender.acquire(key);
    await eventually('the contender listens', async () => (await receivers(admin, key)) > 0);
    // Of two clients: a connection for commands each, and the contender's for wake-ups.
    await eventually('three connections are encrypted, and one is not', async () => {
      const ports = (String(await admin.client('LIST')).match(/(?<=laddr=\S+:)\d+/g) ?? []).map(Number);
      return ports.toSorted().join() === [port, port, port, server.port].toSorted().join();
    });
    await holder.release(turn);
    await waiting;
  }

  async function refusal(tls: Tls): Promise<LockUnavailableError> {
    const error = await makeActor(tls)
      .acquire(someKey(), { waitTime: 500 })
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockUnavailableError);
    return error as LockUnavailableError;
  }

  test('commands and wake-ups go over it, and nothing goes past it', async () => {
    await admin.config('SET', 'tls-auth-clients', 'no');
    await handOver({ ca });
  });

  test('a server whose certificate nobody vouches for is not talked to', async () => {
    await admin.config('SET', 'tls-auth-clients', 'no');
    const before = await evalshas();
    await refusal({ ca: readFileSync(stranger.ca, 'utf8') });
    expect(await evalshas()).toBe(before);
  });

  test.each([
    ['still waits for the handshake', 10_000, /"connecting" \(the URL/],
    ['has given up a connection', 100, /connect ETIMEDOUT \(nothing answered there: .*the URL/],
  ])(
    'a client with TLS at a port without, which %s: the error says which URL belongs to which server',
    async (_, connectTimeout, says) => {
      const contender = new Actor({ url: `rediss://127.0.0.1:${server.port}`, redis: { connectTimeout } });
      const error = await contender.acquire(someKey(), { waitTime: 500 }).catch((error: unknown) => error);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect((error as LockUnavailableError).message).toMatch(says);
      expect((error as LockUnavailableError).message).toContain('`rediss://` if the server speaks TLS');
    },
  );

  test('with certificates on both sides', async () => {
    await admin.config('SET', 'tls-auth-clients', 'yes');
    await handOver({ ca, ...contents(authority.issue('client')) });
    await refusal({ ca });
    await refusal({ ca, ...contents(stranger.issue('client')) });
  });

  test('closing a connection for wake-ups in the middle of a handshake that fails is nobody’s uncaught error', async () => {
    await admin.config('SET', 'tls-auth-clients', 'no');
    const uncaught: unknown[] = [];
    const note = (error: unknown) => void uncaught.push(error);
    process.on('uncaughtException', note);
    onTestFinished(() => void process.off('uncaughtException', note));
    // The certificate is refused, and along with it comes the server's complaint that the handshake was broken off. Of
    // many at once, so that the server is behind.
    const tls = { ca: readFileSync(stranger.ca, 'utf8') };
    const hooks = { heard() {}, failed() {}, ended() {} };
    const closeEarly = async () => {
      const client = new Redis(`rediss://127.0.0.1:${port}`, { ...SubscriberConnection.SETTINGS, tls });
      const connection = new SubscriberConnection(client, { pubsub: 'classic', pingEvery: 60_000 }, hooks);
      await eventually('it has begun', async () => client.stream !== undefined, { every: 0 });
      const { stream } = client;
      const closed = new Promise((resolve) => stream.once('close', resolve));
      connection.close();
      if (!stream.closed) await closed;
    };
    await Promise.all(Array.from({ length: 40 }, closeEarly));
    expect(uncaught).toEqual([]);
  });

  const contents = ({ key, cert }: Certificate) => ({
    key: readFileSync(key, 'utf8'),
    cert: readFileSync(cert, 'utf8'),
  });
  const evalshas = async () => /cmdstat_evalsha:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1];
});
