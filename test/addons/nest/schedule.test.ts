import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Cron, CronExpression, ScheduleModule, Timeout } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { expect, test } from 'vitest';
import { currentLock, FencedLockModule, WithLock } from '../../../src/addons/nest/index.js';
import { describeWithShop, gate, Shop } from '../../support/shop.js';

describeWithShop('a method that @nestjs/schedule calls', () => {
  const shop = new Shop();
  const { prisma } = shop.client();

  test('runs under its lock, whether the decorator of its time stands above or below', async () => {
    const { key } = await shop.product(1);
    const [above, below] = [gate<string>(), gate<string>()];
    @Injectable()
    class Jobs {
      @Timeout(1)
      @WithLock(`${key}:above`)
      async above(): Promise<void> {
        above.open(currentLock(prisma).key);
      }

      @WithLock(`${key}:below`)
      @Cron(CronExpression.EVERY_SECOND)
      async below(): Promise<void> {
        below.open(currentLock(prisma).key);
      }
    }
    const imports = [ScheduleModule.forRoot(), FencedLockModule.forRoot({ client: prisma, disconnect: false })];
    const nest = await Test.createTestingModule({ imports, providers: [Jobs] }).compile();
    await nest.init();
    expect(await Promise.all([above.opened, below.opened])).toEqual([`${key}:above`, `${key}:below`]);
    await nest.close();
  });
});
