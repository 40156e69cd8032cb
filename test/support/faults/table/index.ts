import type { Fault } from '../fault.js';
import { LINES } from './lines.js';
import { OPERATORS } from './operators.js';
import { POSTGRES } from './postgres.js';
import { REDIS } from './redis.js';
import { STEP_FAULTS } from './steps.js';
import { WORKERS } from './workers.js';

/** All faults that there are, by what they hurt. */
export const FAULTS = {
  workers: WORKERS,
  operators: OPERATORS,
  lines: LINES,
  Redis: REDIS,
  Postgres: POSTGRES,
  steps: STEP_FAULTS,
} as const satisfies Record<string, readonly Fault[]>;

export const ALL_FAULTS: readonly Fault[] = Object.values(FAULTS).flat();
