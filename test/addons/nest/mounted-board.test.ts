import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { test } from 'vitest';
import { createBoard, toNodeListener } from '../../../src/addons/board/index.js';
import { describeWithShop, Shop } from '../../support/shop.js';
import { expectServed } from '../board/served.js';
import { appModule, PrismaService } from './shop.js';

const BASE = '/admin/locks';

describeWithShop('the board in Nest', () => {
  const shop = new Shop();

  // As in docs/guides/board.md.
  test('shows the locks of the injected client, behind the body parser of Nest and with a global prefix', async () => {
    const keyPrefix = `nest-${randomUUID()}:`;
    const client = shop.client({ keyPrefix }).prisma;
    const app = await NestFactory.create<NestExpressApplication>(appModule({ lock: { client } }), { logger: false });
    app.useBodyParser('json');
    app.setGlobalPrefix('api');
    const board = createBoard(app.get(PrismaService), {
      basePath: BASE,
      allowForceRelease: true,
      hosts: ['127.0.0.1'],
      refreshInterval: 100,
    });
    app.use(BASE, toNodeListener(board));
    await app.listen(0, '127.0.0.1');
    shop.closeLater(() => {
      board.close();
      return app.close();
    });
    const origin = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
    await expectServed(origin, BASE, client, keyPrefix);
  });
});
