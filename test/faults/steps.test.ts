import { FAULTS } from '../support/faults/table/index.js';
import { byThrees, byTwos, describeFaults } from './suite.js';

describeFaults('faults at a certain step of a call', byThrees(FAULTS.steps));
describeFaults('faults between two turns on one connection', byTwos(FAULTS.chains));
