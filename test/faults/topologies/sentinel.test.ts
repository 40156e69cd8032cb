import { describeTopology } from '../suite.js';

describeTopology('sentinel');
