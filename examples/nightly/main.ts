// Three processes' clients with a "night" of two seconds, for three nights.
import { createClient } from '../client.js';
import { whenDue, writeReport } from './report.js';

const NIGHT = 2_000;
const NIGHTS = 3;

const clients = Array.from({ length: 3 }, () => createClient());
const end = new AbortController();
let written = 0;
try {
  await Promise.all(
    clients.map(({ prisma }, n) => {
      const run = async () => {
        const result = await writeReport(prisma, { interval: NIGHT, offset: 0 });
        if (result.ran) {
          console.log(`process ${n + 1} wrote report ${result.value.id}`);
          if (++written === NIGHTS) end.abort();
        }
        return result;
      };
      return whenDue(run, end.signal);
    }),
  );
} finally {
  for (const { close } of clients) await close();
}
