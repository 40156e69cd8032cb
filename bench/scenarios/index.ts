import { bystanders } from './bystanders.js';
import { commands } from './commands.js';
import { fairness } from './fairness.js';
import { guard } from './guard.js';
import { handOver, handOverDistant } from './hand-over.js';
import { hotKey } from './hot-key.js';
import { hotKeyDistant } from './hot-key-distant.js';
import { hotKeyProcesses } from './hot-key-processes.js';
import { idleWaiters } from './idle-waiters.js';
import { memory } from './memory.js';
import { overhead, overheadDistant, overheadFaces } from './overhead.js';
import { permits } from './permits.js';
import { reads } from './reads.js';
import type { Scenario } from './scenario.js';
import { topologies } from './topologies.js';

export const SCENARIOS: readonly Scenario[] = [
  overhead,
  overheadDistant,
  overheadFaces,
  reads,
  hotKey,
  hotKeyProcesses,
  hotKeyDistant,
  bystanders,
  idleWaiters,
  memory,
  handOver,
  handOverDistant,
  fairness,
  permits,
  commands,
  guard,
  topologies,
];
