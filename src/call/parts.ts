import type { Emit } from '../base/events.js';
import type { Fencing } from '../fencing/fencing.js';
import type { WaitingRoom } from '../lease/queue/waiting-room.js';
import type { Outage } from '../transaction/outage.js';
import type { RunningHooks } from './hooks.js';
import type { OpenHandles } from './open-handles.js';

/** What the calls of one extended client share. */
export interface Parts {
  readonly room: WaitingRoom;
  /** What the waiting room is known by in Postgres: a signed number of 32 bits. */
  readonly roomId: number;
  readonly handles: OpenHandles;
  readonly hooks: RunningHooks;
  readonly fencing: Fencing;
  readonly outage: Outage;
  readonly emit: Emit;
}
