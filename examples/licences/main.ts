// Four processes' clients render two films each, with three licences.
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../client.js';
import { renderWithLicence } from './render.js';

const clients = Array.from({ length: 4 }, () => createClient());
const inUse = new Set<string>();
try {
  await Promise.all(
    clients.flatMap(({ prisma }, process) =>
      [1, 2].map((film) =>
        renderWithLicence(prisma, async (licence, signal) => {
          if (inUse.has(licence)) throw new Error(`${licence} is used twice`);
          inUse.add(licence);
          await sleep(200, undefined, { signal }).finally(() => inUse.delete(licence));
          console.log(`process ${process + 1} has rendered film ${film} with ${licence}`);
        }),
      ),
    ),
  );
  console.log('8 films rendered');
} finally {
  for (const { close } of clients) await close();
}
