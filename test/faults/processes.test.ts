import { FAULTS } from '../support/faults/table/index.js';
import { describeFaults } from './suite.js';

const { Redis, Postgres } = FAULTS;
const workers = [...FAULTS.workers, ...FAULTS.operators];
const most = Math.max(workers.length, Redis.length, Postgres.length);

/** One of each kind at a time: a server has no room for two. */
const together = Array.from({ length: most }, (_, index) =>
  [workers, Redis, Postgres].flatMap((kind) => kind[index] ?? []),
);

describeFaults('faults of workers, operators, Redis and Postgres', together);
