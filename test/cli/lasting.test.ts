import { expect, inject, test } from 'vitest';
import { Context } from '../../src/cli/context.js';
import { LastingServers } from '../../src/cli/servers/lasting.js';
import { gate } from '../support/shop.js';

test('work that waits while the connections are closed opens none', async () => {
  const output = { write: () => {} };
  const env = { DATABASE_URL: inject('postgres').app };
  const context = new Context({ cwd: '.', env, now: () => new Date(), stdout: output, stderr: output }, false);
  const servers = new LastingServers(context, {});
  const [inside, goOn] = [gate(), gate()];
  const first = servers.withDatabase(async () => {
    inside.open();
    await goOn.opened;
  });
  const waiting = servers.withDatabase(async () => 'ran');
  await inside.opened;
  const { round } = servers;
  servers.close();
  // As a look does that has heard from Redis by now.
  const later = servers.withDatabase(async () => 'ran', round);
  const refused = [waiting, later].map((work) => expect(work).rejects.toThrow('Nobody looks any more.'));
  goOn.open();
  await first;
  await Promise.all(refused);
  // Somebody looks again.
  expect(await servers.withDatabase(async () => 'ran')).toBe('ran');
  servers.close();
});
