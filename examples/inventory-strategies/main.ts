// Sells one product in ten ways from three processes, twice each: undisturbed, and with one process that is frozen
// between its read and its write. `--write` puts the table and the picture into docs/guides/selling-stock.
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startWorker } from '../../test/support/worker.js';
import { Books } from './books.js';
import { chart } from './chart.js';
import { exitCode, markdown, table } from './report.js';
import { compare, type Scene } from './run.js';
import { STRATEGIES } from './strategies/index.js';
import { isExact, lost, type Outcome } from './tally.js';

const WORKERS = 3;
const PAGE = new URL('../../docs/guides/selling-stock.md', import.meta.url);
const PICTURE = new URL('../../docs/guides/selling-stock.svg', import.meta.url);
const TABLE = /(<!-- figures -->\n)[\s\S]*?(<!-- end of figures -->)/;

const { values } = parseArgs({
  options: {
    units: { type: 'string', default: '60' },
    buyers: { type: 'string', default: '150' },
    write: { type: 'boolean', default: false },
  },
});
const crowd = { units: Number(values.units), buyers: Number(values.buyers) };

const { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl } = process.env;
if (!databaseUrl || !redisUrl) throw new Error('Set DATABASE_URL and REDIS_URL, or run `npm run example`.');

const books = new Books(databaseUrl, redisUrl);
const workers = Array.from({ length: WORKERS }, () => startWorker(new URL('worker.ts', import.meta.url)));
try {
  process.exitCode = await main({ databaseUrl, redisUrl, workers, books });
} finally {
  await Promise.all(workers.map((worker) => worker.kill()));
  await books.close();
}

async function main(scene: Scene): Promise<number> {
  console.log(`${crowd.buyers} buyers, ${crowd.units} units, ${WORKERS} processes.\n`);
  const outcomes: Outcome[] = [];
  for (const strategy of Object.keys(STRATEGIES)) {
    const outcome = await compare(scene, strategy, crowd);
    console.log(`${strategy}: ${isExact(outcome.frozen) ? 'exact' : `${lost(outcome.frozen)} sales lost`}`);
    outcomes.push(outcome);
  }
  console.log(`\n${table(outcomes)}`);
  if (values.write) write(outcomes);
  return exitCode(outcomes);
}

function write(outcomes: readonly Outcome[]): void {
  writeFileSync(PICTURE, chart(outcomes));
  const page = readFileSync(PAGE, 'utf8');
  if (!TABLE.test(page)) throw new Error('The page has no place for the table.');
  const withTable = page.replace(TABLE, (_, begin: string, end: string) => `${begin}\n${markdown(outcomes)}\n\n${end}`);
  writeFileSync(PAGE, withTable);
}
