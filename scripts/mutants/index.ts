import { ADMISSION } from './admission.js';
import { ATTEMPT } from './attempt.js';
import { BOARD } from './board.js';
import { CALLS } from './calls.js';
import { CHANNELS } from './channels.js';
import { COMMAND } from './command.js';
import { CONNECTION } from './connection.js';
import { HOOKS } from './hooks.js';
import { LEASE } from './lease.js';
import { LUA } from './lua.js';
import { MEMORY } from './memory.js';
import type { Mutant } from './mutant.js';
import { NODES } from './nodes.js';
import { ONCE } from './once.js';
import { OUTCOME } from './outcome.js';

import { QUORUM } from './quorum.js';
import { STATEMENTS } from './statements.js';
import { SUBPATHS } from './subpaths.js';
import { WRITES } from './writes.js';

export const MUTANTS: readonly Mutant[] = [
  ADMISSION,
  ATTEMPT,
  OUTCOME,
  CONNECTION,
  STATEMENTS,
  WRITES,
  LUA,
  LEASE,
  MEMORY,
  NODES,
  QUORUM,
  CALLS,
  HOOKS,
  ONCE,
  BOARD,
  CHANNELS,
  COMMAND,
  SUBPATHS,
].flat();
