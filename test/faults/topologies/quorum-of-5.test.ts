import { describeTopology } from '../suite.js';

describeTopology('quorum of 5');
