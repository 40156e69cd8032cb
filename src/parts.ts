import type { Emit } from './base/events.js';
import type { Fencing } from './fence/fencing.js';
import type { Outage } from './fence/outage.js';
import type { WaitingRoom } from './lease/waiting-room.js';
import type { OpenHandles } from './open-handles.js';

/** What the calls of one extended client share. */
export interface Parts {
  readonly room: WaitingRoom;
  /** What the waiting room is known by in Postgres: a signed number of 32 bits. */
  readonly roomId: number;
  readonly handles: OpenHandles;
  readonly fencing: Fencing;
  readonly outage: Outage;
  readonly emit: Emit;
}
