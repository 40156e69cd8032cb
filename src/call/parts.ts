import type { Emit } from '../base/events.js';
import type { Query } from '../database/database.js';
import type { Fencing } from '../fencing/fencing.js';
import type { WaitingRoom } from '../lease/queue/waiting-room.js';
import type { Outage } from '../transaction/outage.js';
import type { CommitTimes } from './commit-times.js';
import type { RunningHooks } from './hooks.js';
import type { OpenHandles } from './open-handles.js';

/** What the calls of one extended client share. */
export interface Parts {
  readonly room: WaitingRoom;
  /** The id of the waiting room in Postgres: a signed 32-bit number. */
  readonly roomId: number;
  readonly handles: OpenHandles;
  readonly hooks: RunningHooks;
  readonly commitTimes: CommitTimes;
  /** A connection for looks, which must not keep the rescue connection waiting. */
  readonly lookout: Query;
  readonly fencing: Fencing;
  readonly outage: Outage;
  readonly emit: Emit;
}
