import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Body, Controller, Get, HttpCode, Inject, Injectable, Module, Param, Post, type Type } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import {
  ClientClass,
  currentTx,
  FencedLockExceptionFilter,
  FencedLockHealthIndicator,
  FencedLockModule,
  type FencedLockModuleExtras,
  type FencedLockModuleOptions,
  FencedLockService,
  InjectLockClient,
  InjectLockService,
  WithLock,
} from '../../../src/addons/nest/index.js';
import type { TryResult } from '../../../src/index.js';
import type { Shop, ShopClient } from '../../support/shop.js';
import { gate } from '../../support/shop.js';

/** As an application has it, but for the client, which each test makes. */
const createPrisma = (): ShopClient => {
  throw new Error('the test gives the client');
};
export class PrismaService extends ClientClass(createPrisma) {}

/** Where a test holds up work: it opens `inside`, and goes on when `goOn` is opened. */
export class Stop {
  readonly inside = gate();
  readonly goOn = gate();
}

@Injectable()
export class StockService {
  constructor(
    readonly prisma: PrismaService,
    readonly locks: FencedLockService<PrismaService>,
    readonly stop: Stop,
  ) {}

  /** By the injected client. */
  sell(id: number, key: string): Promise<number> {
    return this.prisma.$withLock(key, () => this.take(id));
  }

  /** By the service. */
  sellToo(id: number, key: string): Promise<number> {
    return this.locks.withLock(key, async (tx) => (await tx.stock.findUniqueOrThrow({ where: { id } })).quantity - 1);
  }

  @WithLock('{1}')
  async stopAndSell(id: number, _key: string): Promise<number> {
    this.stop.inside.open();
    await this.stop.goOn.opened;
    return await this.take(id);
  }

  @WithLock('{1}', { mode: 'try' })
  async trySell(id: number, _key: string): Promise<TryResult<number>> {
    return { acquired: true, value: await this.take(id) };
  }

  async take(id: number): Promise<number> {
    const tx = currentTx(this.prisma);
    const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
    return (await tx.stock.update({ where: { id }, data: { quantity: quantity - 1 } })).quantity;
  }
}

/** A class that has no client of its own, and one of a second database. */
@Injectable()
export class Reports {
  constructor(@InjectLockClient('reports') readonly reports: ShopClient) {}

  @WithLock('{0}')
  async byDefault(_key: string, client: ShopClient): Promise<number> {
    return await currentTx(client).stock.count();
  }

  @WithLock('{0}', { client: 'reports' })
  async byName(_key: string): Promise<number> {
    return await currentTx(this.reports).stock.count();
  }
}

@Controller()
class StockController {
  constructor(
    private readonly stock: StockService,
    private readonly health: HealthCheckService,
    private readonly locks: FencedLockHealthIndicator,
    @Inject('ERRORS') private readonly errors: Map<string, Error>,
  ) {}

  @Post('stop/:id')
  @HttpCode(200)
  async stopAndSell(@Param('id') id: string, @Body() { key }: { key: string }): Promise<string> {
    return String(await this.stock.stopAndSell(Number(id), key));
  }

  @Post('sell/:id')
  @HttpCode(200)
  async sell(@Param('id') id: string, @Body() { key }: { key: string }): Promise<string> {
    return String(await this.stock.sell(Number(id), key));
  }

  /** The decorator on a handler itself, among those of Nest. */
  @Post('locked/:id')
  @WithLock((_: string, { key }: { readonly key: string }) => key)
  @HttpCode(200)
  async locked(@Param('id') id: string, @Body() _body: { key: string }): Promise<string> {
    return String(await this.stock.take(Number(id)));
  }

  /** Takes no lock, so no end of locks waits for it. */
  @Get('slow/:ms')
  async slow(@Param('ms') ms: string): Promise<string> {
    await sleep(Number(ms));
    return 'slow';
  }

  @Get('fail/:code')
  fail(@Param('code') code: string): never {
    throw this.errors.get(code);
  }

  @Get('health')
  check() {
    return this.health.check([() => this.locks.isHealthy()]);
  }
}

interface AppOptions {
  readonly lock: FencedLockModuleOptions & FencedLockModuleExtras;
  readonly reports?: ShopClient;
  readonly errors?: Map<string, Error>;
  readonly stop?: Stop;
  readonly imports?: readonly Type[];
}

export function appModule({ lock, reports, errors = new Map(), stop = new Stop(), imports = [] }: AppOptions) {
  const { name: _, isGlobal, token = PrismaService, ...options } = lock;
  @Module({
    imports: [
      FencedLockModule.forRootAsync({ token, isGlobal: isGlobal ?? true, useFactory: async () => options }),
      ...(reports ? [FencedLockModule.forRoot({ client: reports, name: 'reports' })] : []),
      TerminusModule,
      ...imports,
    ],
    controllers: [StockController],
    providers: [
      StockService,
      ...(reports ? [Reports] : []),
      { provide: Stop, useValue: stop },
      { provide: 'ERRORS', useValue: errors },
      { provide: APP_FILTER, useClass: FencedLockExceptionFilter },
    ],
  })
  class AppModule {}
  return AppModule;
}

/** An application without a server. */
export async function inContext(_: Shop, options: AppOptions) {
  return {
    app: await NestFactory.createApplicationContext(appModule(options), { logger: false, abortOnError: false }),
  };
}

/** An application that listens, and is closed with the suite. */
export async function listening(shop: Shop, options: AppOptions) {
  const app = await NestFactory.create<NestExpressApplication>(appModule(options), {
    logger: false,
    abortOnError: false,
  });
  await app.listen(0, '127.0.0.1');
  shop.closeLater(() => app.close());
  const { port } = app.getHttpServer().address() as AddressInfo;
  const url = (path: string) => `http://127.0.0.1:${port}/${path}`;
  return {
    app,
    get: (path: string) => fetch(url(path)),
    post: (path: string, body: object) =>
      fetch(url(path), {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
  };
}

/** A service of another client, by its name. */
@Injectable()
export class ByName {
  constructor(@InjectLockService('reports') readonly locks: FencedLockService<ShopClient>) {}
}
