import { describeTopology } from '../suite.js';

for (const name of ['quorum of 3', 'quorum of 5'] as const) describeTopology(name);
