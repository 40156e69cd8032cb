import { admissionGrowth } from './admission-growth.js';
import { bystanders } from './bystanders.js';
import { commands } from './commands.js';
import { fairness } from './fairness.js';
import { floor } from './floor.js';
import { guard } from './guard.js';
import { handOver } from './hand-over.js';
import { hotKey } from './hot-key.js';
import { hotKeyDistant } from './hot-key-distant.js';
import { hotKeyProcesses } from './hot-key-processes.js';
import { idleWaiters } from './idle-waiters.js';
import { manyKeys } from './many-keys.js';
import { memory } from './memory.js';
import { overhead } from './overhead.js';
import { renewal } from './renewal.js';
import type { Scenario } from './scenario.js';
import { steps } from './steps.js';
import { topologies } from './topologies.js';

export const SCENARIOS: readonly Scenario[] = [
  overhead,
  steps,
  floor,
  hotKey,
  hotKeyProcesses,
  hotKeyDistant,
  bystanders,
  idleWaiters,
  memory,
  handOver,
  fairness,
  manyKeys,
  renewal,
  admissionGrowth,
  commands,
  guard,
  topologies,
];
