import { describeTopology } from '../suite.js';

for (const name of ['poll', 'valkey', 'sentinel', 'cluster'] as const) describeTopology(name);
