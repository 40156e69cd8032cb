import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { createBoard, toNodeListener } from '../../src/addons/board/index.js';
import { AppModule } from './app.module.js';
import { PrismaService } from './prisma.js';

const { PORT = '3000' } = process.env;

async function bootstrap() {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  // It has no login. In an application that others reach, put your own check before it.
  app.use('/admin/locks', toNodeListener(createBoard(app.get(PrismaService), { basePath: '/admin/locks' })));
  app.enableShutdownHooks();
  // A server that hangs keeps nobody: what was not committed is rolled back by Postgres.
  process.once('SIGTERM', () => setTimeout(() => process.exit(1), 2_000).unref());

  await app.listen(Number(PORT), '127.0.0.1');
  console.log(`listening on ${await app.getUrl()}`);
  // Tests and process managers hear by this that it serves.
  process.send?.({ type: 'listening' });
}
void bootstrap();
