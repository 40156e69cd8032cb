import type { Fault } from '../support/faults/fault.js';
import { FAULTS } from '../support/faults/table/index.js';
import { describeFaults } from './suite.js';

const { clocks, steps, workers } = FAULTS;

function named(name: string): Fault {
  const found = [...clocks, ...steps, ...workers].find((fault) => fault.name === name);
  if (found === undefined) throw new Error(`there is no fault with the name ${name}`);
  return found;
}

/** What is taken and set while a clock is off is what it leaves wrong when it is right again. */
describeFaults(
  'wall clocks of servers, and processes that are killed or frozen meanwhile',
  [
    ['wall clock of Redis an hour ahead', 'killed, having sent the read', 'wall clock of Postgres an hour behind'],
    ['wall clock of Redis an hour behind', 'killed, having sent the read', 'worker frozen'],
    ['wall clock of Postgres an hour ahead', 'frozen past its lease, having sent the write', 'worker killed'],
    ['wall clock of Postgres an hour behind', 'frozen past its lease, having sent the write', 'worker frozen'],
  ].map((names) => names.map(named)),
);
