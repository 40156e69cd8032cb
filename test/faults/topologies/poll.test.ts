import { describeTopology } from '../suite.js';

describeTopology('poll');
