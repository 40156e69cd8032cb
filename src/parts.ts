import type { Emit } from './base/events.js';
import type { Fencing } from './fence/fencing.js';
import type { WaitingRoom } from './lease/waiting-room.js';
import type { OpenHandles } from './open-handles.js';

/** What the calls of one extended client share. */
export interface Parts {
  readonly room: WaitingRoom;
  readonly handles: OpenHandles;
  readonly fencing: Fencing;
  readonly emit: Emit;
  /** Whether the last caller had its lease without waiting: then the next one probably has it, too. */
  calm: boolean;
}
