import { FAULTS } from '../support/faults/table/index.js';
import { byThrees, describeFaults } from './suite.js';

describeFaults('faults at a certain step of a call', byThrees(FAULTS.steps));
