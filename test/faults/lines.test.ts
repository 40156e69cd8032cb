import { FAULTS } from '../support/faults/table/index.js';
import { byThrees, describeFaults } from './suite.js';

describeFaults('faults of connections', byThrees(FAULTS.lines));
