import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';

const { PORT = '3000' } = process.env;

async function bootstrap() {
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
  app.enableShutdownHooks();
  // A server that hangs keeps nobody: what was not committed is rolled back by Postgres.
  process.once('SIGTERM', () => setTimeout(() => process.exit(1), 2_000).unref());

  await app.listen(Number(PORT), '127.0.0.1');
  console.log(`listening on ${await app.getUrl()}`);
  // Tests and process managers hear by this that it serves.
  process.send?.({ type: 'listening' });
}
void bootstrap();
