import { describeTopology } from '../suite.js';

describeTopology('valkey');
