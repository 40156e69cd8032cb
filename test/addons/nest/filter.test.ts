import 'reflect-metadata';
import { inspect } from 'node:util';
import { Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { firstValueFrom, type Observable } from 'rxjs';
import { beforeAll, expect, test, vi } from 'vitest';
import { FencedLockExceptionFilter } from '../../../src/addons/nest/index.js';
import * as errors from '../../../src/index.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { listening } from './shop.js';

describeWithShop('an HTTP request that ends with an error of a lock', () => {
  const shop = new Shop();
  const KEY = 'stock:secret';
  const held = new errors.LockTimeoutError(KEY, '1 ms');
  const LIST: readonly [errors.FencedLockError, number, string | null][] = [
    [held, 409, '1'],
    [new errors.StaleTokenError(KEY, 1n, 'Stock'), 409, null],
    [new errors.LockUnavailableError(KEY, new Error('redis://user:pw@host')), 503, '1'],
    [new errors.LockLostError(KEY, 'gone'), 503, null],
    [new errors.ClosedError('it was.', { key: KEY }), 503, '1'],
    [new errors.TransactionAbortedError(KEY, 'connection', 'it was.'), 503, '1'],
    [new errors.CommitUnknownError(KEY, '1', undefined), 500, null],
    [new errors.HookFailedError(KEY, { password: 'of the function' }, [new Error('mail')]), 500, null],
    [new errors.ReentryError(KEY), 500, null],
  ];
  const byCode = new Map<string, Error>(LIST.map(([error]) => [error.code, error]));
  byCode.set('OTHER', new Error('of the application'));
  const { prisma } = shop.client({ defaults: { waitTime: 1_500 } });
  let served: Awaited<ReturnType<typeof listening>>;
  beforeAll(async () => {
    served = await listening(shop, { lock: { client: prisma }, errors: byCode });
  });

  test('is answered by what became of the work, with the code and without the key', async () => {
    const { get } = served;
    for (const [error, status, retryAfter] of LIST) {
      const response = await get(`fail/${error.code}`);
      const body = await response.text();
      expect([error.code, response.status, response.headers.get('retry-after')]).toEqual([
        error.code,
        status,
        retryAfter,
      ]);
      expect(JSON.parse(body)).toMatchObject({ statusCode: status, code: error.code });
      expect(body).not.toMatch(/secret|pw|host/);
    }
  });

  test('is told when the lease of the holder ends, where that is known', async () => {
    const { get } = served;
    for (const [expiresIn, seconds] of [
      [4_200, '5'],
      [-1, '1'],
      [60_000, '60'],
    ] as const) {
      byCode.set('HELD', Object.assign(new errors.LockTimeoutError(KEY, '1 ms'), { expiresIn }));
      expect((await get('fail/HELD')).headers.get('retry-after')).toBe(seconds);
    }
  });

  test('is logged where the application has a bug, not where a rollout turns it away, and without the result', async () => {
    const log = vi.spyOn(Logger.prototype, 'error').mockImplementation(() => {});
    try {
      const { get } = served;
      for (const code of ['CLOSED', 'LOCK_TIMEOUT', 'STALE_TOKEN', 'LOCK_LOST']) await get(`fail/${code}`);
      expect(log.mock.calls).toEqual([[byCode.get('STALE_TOKEN')], [byCode.get('LOCK_LOST')]]);
      await get('fail/HOOK_FAILED');
      const said = inspect(log.mock.lastCall, { depth: 9 });
      expect(said).toMatch(/HookFailedError: .*mail/);
      expect(said).not.toContain('of the function');
    } finally {
      log.mockRestore();
    }
  });

  test('leaves the errors of the application to Nest', async () => {
    const { get } = served;
    const response = await get('fail/OTHER');
    expect([response.status, await response.json()]).toEqual([
      500,
      { statusCode: 500, message: 'Internal server error' },
    ]);
  });

  test('is 409 while somebody else has the key, and 200 for a locked handler once it is free', async () => {
    const { id, key } = await shop.product(10);
    const { post } = served;
    const holder = await shop.client().prisma.$lock(key);
    const busy = await post(`sell/${id}`, { key });
    expect([busy.status, await busy.json()]).toEqual([409, expect.objectContaining({ code: 'LOCK_TIMEOUT' })]);
    expect((await post(`locked/${id}`, { key })).status).toBe(409);
    await holder.release();
    const sold = await post(`locked/${id}`, { key });
    expect([sold.status, await sold.text()]).toEqual([200, '9']);
  });

  test('is the answer to a message of a microservice or of a WebSocket, and goes on as it is elsewhere', async () => {
    const filter = new FencedLockExceptionFilter(served.app.get(HttpAdapterHost));
    const sent: unknown[] = [];
    const client = { emit: (...message: unknown[]) => sent.push(message) };
    const hostOf = (type: string) =>
      ({ getType: () => type, switchToWs: () => ({ getClient: () => client }) }) as never;
    const answer = { status: 'error', code: 'LOCK_TIMEOUT', message: expect.not.stringContaining('secret') };
    await expect(firstValueFrom(filter.catch(held, hostOf('rpc')) as Observable<never>)).rejects.toEqual(answer);
    filter.catch(held, hostOf('ws'));
    expect(sent).toEqual([['exception', answer]]);
    expect(() => filter.catch(held, hostOf('graphql'))).toThrow(held);
  });
});
