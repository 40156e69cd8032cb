import { FAULTS } from '../support/faults/table/index.js';
import { describeFaults } from './suite.js';

describeFaults('faults: workers, Redis and Postgres', [...FAULTS.workers, ...FAULTS.Redis, ...FAULTS.Postgres]);
