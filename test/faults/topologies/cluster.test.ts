import { describeTopology } from '../suite.js';

describeTopology('cluster');
