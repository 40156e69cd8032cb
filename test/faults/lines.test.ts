import { FAULTS } from '../support/faults/table/index.js';
import { describeFaults } from './suite.js';

describeFaults('faults: lines', FAULTS.lines);
