import { Redis, type RedisOptions } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { LockUnavailableError } from '../../../src/base/errors.js';
import { RedisStore } from '../../../src/redis/store.js';
import { eventually } from '../../support/eventually.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { startSentinelGroup } from '../../support/servers/index.js';
import { describeWithGroup } from '../../support/site-suite.js';
import { Party, PREFIX, someKey } from '../../waiting/actors.js';

const HEALS = { within: 30_000, every: 50 };

/** Whose client asks one sentinel alone. */
class SentinelActor extends Party {
  readonly redis: Redis;

  constructor(name: string, { host, port }: FaultProxy, more: Omit<RedisOptions, 'replyMapping'>) {
    const redis = new Redis({ name, sentinels: [{ host, port }], updateSentinels: false, ...more });
    redis.on('error', () => {});
    super((emit) => new RedisStore(redis, { keyPrefix: PREFIX, commandTimeout: 1_000 }, emit), {});
    this.redis = redis;
  }

  disconnect(): void {
    this.redis.disconnect();
  }
}

describeWithGroup('a client of Sentinel', startSentinelGroup, (group) => {
  async function stage(more: Omit<RedisOptions, 'replyMapping'>) {
    const { site } = group();
    if (site.kind !== 'sentinel') throw new Error('this is no Sentinel group');
    const [sentinel] = site.sentinels;
    if (sentinel === undefined) throw new Error('there is no sentinel');
    const line = await startFaultProxy(sentinel);
    onTestFinished(() => line.close());
    // The answer to its SUBSCRIBE.
    const listens = said(line, '+switch-master');
    const actor = new SentinelActor(site.name, line, more);
    await actor.redis.ping();
    return { actor, line, listens };
  }

  /** Resolves when the sentinel has said who is master; its word is on its way until `resume`. */
  function holdAnswer(line: FaultProxy): Promise<void> {
    return new Promise((resolve) => {
      const forget = line.onData('toClient', (data) => {
        if (!data.includes('\r\n127.0.0.1\r\n')) return 'forward';
        forget();
        setImmediate(resolve);
        return 'hold';
      });
    });
  }

  function said(line: FaultProxy, what: string): Promise<void> {
    return new Promise((resolve) => {
      const forget = line.onData('toClient', (data) => {
        if (data.includes(what)) {
          forget();
          setImmediate(resolve);
        }
        return 'forward';
      });
    });
  }

  const end = (redis: Redis) => new Promise<void>((resolve) => redis.once('end', resolve));

  test('that ends for good, because it heard of the failover while it asked for the new master, is connected again', async () => {
    const { actor, line, listens } = await stage({ failoverDetector: true });
    await listens;
    const ended = end(actor.redis);
    const asked = holdAnswer(line);
    const heard = said(line, '+switch-master');
    const master = await group().ownerOf('');
    await master.killHard();
    await asked;
    await heard;
    line.resume();
    await ended;
    const turn = await actor.acquire(someKey());
    turn.end();
    await master.start();
    await eventually('it is whole', group().isWhole, HEALS);
  });

  test('that its owner has ended on its way to the master stays so', async () => {
    const { actor, line } = await stage({});
    const asked = holdAnswer(line);
    actor.redis.disconnect(true);
    await asked;
    const ended = end(actor.redis);
    actor.redis.disconnect();
    line.resume();
    await ended;
    // At once, and not at the end of its wait time.
    await expect(actor.acquire(someKey(), { waitTime: 600_000 })).rejects.toBeInstanceOf(LockUnavailableError);
    expect(actor.redis.status).toBe('end');
  });
});
