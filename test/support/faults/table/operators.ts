import type { Fault } from '../fault.js';

const FORCED_WITHIN = 5_000;

/** By somebody who means well: as hard as a fault for whoever has the key. */
export const OPERATORS: readonly Fault[] = [
  {
    name: 'forceRelease by an operator',
    place: 'operator',
    async strike(_, actor) {
      actor.tell({ type: 'force release' });
      return await actor.answers('forced', FORCED_WITHIN);
    },
  },
];
