import { randomUUID } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import type { FencedLockEvent } from '../../../src/base/events.js';
import { Subscriber } from '../../../src/redis/subscriber/subscriber.js';
import { nodesOf } from '../../../src/redis/topology/nodes.js';
import type { WakeUp } from '../../../src/waiting/store.js';
import { untilHolds } from '../../support/eventually.js';
import { startFaultProxy } from '../../support/fault-proxy.js';
import { describeWithRedis, requireRedis } from '../../support/redis-suite.js';
import { describeWithShop } from '../../support/shop.js';
import { startWorker } from '../../support/worker.js';
import { Actor, someKey, Tally } from '../../waiting/actors.js';

const closing: Array<() => void> = [];
afterAll(() => {
  for (const close of closing) close();
});

/** A client that listens, under a name by which the server knows its connections. */
function makeListener(url: string, options: Omit<RedisOptions, 'replyMapping'> = {}) {
  const name = `listener-${randomUUID()}`;
  const events: FencedLockEvent[] = [];
  const redis = new Redis(url, { connectionName: name, retryStrategy: () => 20, ...options });
  redis.on('error', () => {});
  const subscriber = new Subscriber(nodesOf(redis), randomUUID(), (event) => events.push(event));
  closing.push(() => {
    subscriber.close();
    redis.disconnect();
  });
  return { name, redis, subscriber, events };
}

const someChannel = () => `wake:${randomUUID()}`;

/** The connections of a listener as the server sees them, that for commands not counted. */
async function subscribers(admin: Redis, name: string): Promise<Array<{ id: string; channels: number }>> {
  const list = (await admin.client('LIST')) as string;
  return list
    .split('\n')
    .filter((line) => line.includes(` name=${name} `) && !line.includes(' sub=0 '))
    .map((line) => ({ id: /\bid=(\d+)/.exec(line)?.[1] ?? '', channels: Number(/ sub=(\d+)/.exec(line)?.[1]) }));
}

/** What all of a key's subscribers hear, and what only one of them does. */
const EACH = 2;

describeWithShop('the subscriber', () => {
  let url: string;
  let admin: Redis;
  beforeAll(() => {
    url = inject('redis').url as string;
    admin = new Redis(url);
  });
  afterAll(() => admin.disconnect());

  test('a killed connection calls every listener when it breaks, and when it has subscribed again', async () => {
    const { name, subscriber } = makeListener(url);
    const channels = Array.from({ length: 5 }, someChannel);
    const heard: string[] = [];
    const all = new Tally();
    const note = (channel: string) => () => {
      heard.push(channel);
      all.add();
    };
    for (const channel of channels) await subscriber.listen(channel, note(channel));
    const twice = channels[0] as string;
    await subscriber.listen(twice, note(twice));
    const [killed] = await subscribers(admin, name);
    // By its id, because other tests have subscribers on this server too.
    await admin.client('KILL', 'ID', killed?.id as string);
    await all.reach(12);
    const each = [...channels, twice].toSorted();
    expect(heard.slice(0, 6).toSorted()).toEqual(each);
    expect(heard.slice(6).toSorted()).toEqual(each);
    const [back] = await subscribers(admin, name);
    expect(back).toEqual({ id: expect.any(String), channels: EACH * 5 });
    expect(back?.id).not.toBe(killed?.id);
    // It hears what is published from now on, once each.
    await admin.publish(channels[1] as string, 'look');
    await all.reach(13);
    expect(heard.slice(12)).toEqual([channels[1]]);
  });

  test('the connection is opened at the first use, and kept for the next one', async () => {
    const { name, subscriber } = makeListener(url);
    await untilHolds(async () => expect((await admin.client('LIST')) as string).toContain(name));
    const connections = async () => ((await admin.client('LIST')) as string).split(` name=${name} `).length - 1;
    expect(await connections()).toBe(1);
    for (let each = 0; each < 2; each++) {
      const watch = await subscriber.listen(someChannel(), () => {});
      expect(await connections()).toBe(2);
      watch.close();
    }
  });

  test('a process that listened and stopped ends by itself', async () => {
    const worker = startWorker(new URL('fixtures/listener.ts', import.meta.url), [url]);
    await worker.next('done');
    const end = await worker.exited;
    expect(end, worker.output).toEqual({ code: 0, signal: null });
  });

  test('closing it while somebody waits for a subscription rejects, and is no unhandled rejection', async () => {
    const { subscriber } = makeListener(url);
    const listening = subscriber.listen(someChannel(), () => {});
    subscriber.close();
    await expect(listening).rejects.toThrow();
  });
});

describeWithRedis('the subscriber without Redis', (redis) => {
  test('a refusal is told once, however often is tried, and by however many who wait', async () => {
    const admin = new Redis(redis().url);
    onTestFinished(() => admin.disconnect());
    await admin.call('ACL', 'SETUSER', 'deaf', 'on', '>password', '+@all', '-subscribe', '~*', '&*');
    const holder = new Actor({ url: redis().url });
    const waiting = new Actor({ url: redis().url, redis: { username: 'deaf', password: 'password' } });
    const keys = [someKey(), someKey()];
    const held = await Promise.all(keys.map((key) => holder.acquire(key)));
    const turns = keys.map((key) => waiting.acquire(key));
    await waiting.store.watches.reach(6);
    expect(waiting.events).toEqual([
      { type: 'subscriber-down', error: expect.objectContaining({ message: expect.stringContaining('NOPERM') }) },
    ]);
    for (const turn of held) turn.end();
    for (const turn of turns) (await turn).end();
  });

  test('an outage is told once, however often the connection is tried, and by however many that come and go', async () => {
    const { subscriber, redis: client, events } = makeListener(redis().url);
    const errors = new Tally();
    const { duplicate } = client;
    client.duplicate = (...args) => duplicate.apply(client, args).on('error', () => errors.add());
    for (const outage of [1, 2]) {
      const before = await subscriber.listen(someChannel(), () => {});
      await redis().killHard();
      await errors.reach(errors.count + 3);
      before.close();
      for (let each = 0; each < 3; each++) {
        const late = subscriber.listen(someChannel(), () => {});
        const seen = errors.count;
        void late.then((watch) => watch.close()).catch(() => {});
        await errors.reach(seen + 2);
      }
      expect(events).toHaveLength(outage);
      await redis().start();
      (await subscriber.listen(someChannel(), () => {})).close();
    }
  });

  test('a Redis that does not confirm a subscription is an error, and leaves no channel', async () => {
    const { subscriber } = makeListener(redis().url);
    const before = await subscriber.listen(someChannel(), () => {});
    const channel = someChannel();
    redis().freeze();
    await expect(subscriber.listen(channel, () => {})).rejects.toThrow('did not confirm');
    redis().thaw();
    const admin = new Redis(redis().url);
    await untilHolds(async () => expect(await admin.pubsub('CHANNELS', channel)).toEqual([]));
    before.close();
    admin.disconnect();
  });
});

describeWithRedis('the subscriber of a client whose address leads to another server', (redis) => {
  const newPrimary = requireRedis();
  const targetOf = (url: string) => {
    const { hostname, port } = new URL(url);
    return { host: hostname, port: Number(port) };
  };
  /** A client that is connected to the server through a line that can be led to the new primary. */
  async function movable(options: { lazyConnect?: boolean } = {}) {
    const target = targetOf(redis().url);
    const line = await startFaultProxy(target);
    onTestFinished(() => line.close());
    const listener = makeListener(line.url(redis().url), options);
    const move = () => Object.assign(target, targetOf(newPrimary().url));
    return { ...listener, line, move };
  }

  test('goes there with its client, though the old server keeps its connection', async () => {
    const { subscriber, redis: client, move } = await movable();
    await client.ping();
    const channel = someChannel();
    const heard = new Tally();
    await subscriber.listen(channel, () => heard.add());
    move();
    client.disconnect(true);
    await untilHolds(async () => expect(await client.publish(channel, 'look')).toBe(1));
    // When it is subscribed there, and the message.
    await heard.reach(2);
  });

  test('stays where it is when its client connects for the first time', async () => {
    const { subscriber, redis: client } = await movable({ lazyConnect: true });
    const channel = someChannel();
    const heard: WakeUp[] = [];
    await subscriber.listen(channel, (wakeUp) => heard.push(wakeUp));
    await client.connect();
    await client.publish(channel, 'holder 500');
    await untilHolds(() => expect(heard).not.toEqual([]));
    // And not first that the subscription was lost.
    expect(heard).toEqual([{ offeredTo: 'holder', expiresIn: 500 }]);
  });
});
