import { createApp } from './app.js';
import { createClient } from './client.js';

const { DATABASE_URL, REDIS_URL, PORT = '3000', NAME = 'shop' } = process.env;
if (!DATABASE_URL || !REDIS_URL)
  throw new Error('Set DATABASE_URL and REDIS_URL, or run `npm run example -- fastify`.');

const app = createApp(createClient(DATABASE_URL, REDIS_URL), { name: NAME });

async function shutDown(): Promise<void> {
  // A connection that hangs keeps nobody: what was not committed is rolled back by Postgres.
  setTimeout(() => process.exit(1), 2_000).unref();
  await app.close();
}
process.once('SIGTERM', () => void shutDown());
process.once('SIGINT', () => void shutDown());

console.log(`listening on ${await app.listen({ port: Number(PORT), host: '127.0.0.1' })}`);
// Tests and process managers hear by this that it serves.
process.send?.({ type: 'listening' });
