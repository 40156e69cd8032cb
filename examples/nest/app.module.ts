import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { FencedLockExceptionFilter, FencedLockModule } from '../../src/addons/nest/index.js';
import { createPrisma, createRedis, PrismaService } from './prisma.js';
import { StockController } from './stock.controller.js';
import { StockService } from './stock.service.js';

@Module({
  imports: [
    FencedLockModule.forRootAsync({
      token: PrismaService,
      useFactory: () => {
        const redis = createRedis();
        // The locks are given back through Redis, so it is closed after the client.
        return { client: createPrisma(redis), onClosed: () => redis.disconnect() };
      },
    }),
  ],
  controllers: [StockController],
  // 409 where somebody else was first, 503 where nothing was done.
  providers: [StockService, { provide: APP_FILTER, useClass: FencedLockExceptionFilter }],
})
export class AppModule {}
