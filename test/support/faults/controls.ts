import type { Fault } from './fault.js';
import type { Stage } from './servers-and-workers.js';
import { ALL_FAULTS } from './table/index.js';
import { WAYS_OF_THE_PACKAGE, type WayName } from './ways/index.js';

/** The package whole, or with a part of it missing: what remains when that part is thought superfluous. */
export interface Variant {
  readonly name: string;
  readonly ways: readonly WayName[];
  /** Takes the part away. */
  cripple(stage: Stage): Promise<unknown>;
}

export const WHOLE: Variant = { name: 'the package whole', ways: WAYS_OF_THE_PACKAGE, cripple: async () => {} };

export const CONTROLS: readonly Variant[] = [
  { name: 'the admission switched off', ways: ['$withLock, nothing fenced'], cripple: switchOffAdmission },
  { name: 'the row condition only', ways: ['$withLock'], cripple: switchOffAdmission },
  { name: 'the lock alone', ways: ['plain Redis lock'], cripple: async () => {} },
];

/** Those that let two holders in at once. */
export const PROVOKING: readonly Fault[] = ALL_FAULTS.filter(({ name }) =>
  ['FLUSHALL', 'worker frozen'].includes(name),
);

/** It draws a token and limits the times as ever, and takes no row: tokens are in order, and nobody waits for another. */
function switchOffAdmission({ database }: Stage): Promise<unknown> {
  return database.query(`
    CREATE OR REPLACE FUNCTION fenced_lock.admit(
        keys text[], holders uuid[], attempt uuid, lease_time integer, work_time integer, wait_time integer,
        room integer DEFAULT NULL, tokens bigint[] DEFAULT NULL, successors uuid[] DEFAULT NULL, durable boolean DEFAULT NULL
      ) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DECLARE our_token constant bigint := nextval('fenced_lock.token');
    BEGIN
      PERFORM fenced_lock.limit_times(lease_time, work_time);
      PERFORM set_config('fenced_lock.token', our_token::text, true);
      RETURN concat_ws(' ', 1, pg_current_xact_id(), pg_backend_pid(), coalesce((SELECT e.id::text FROM fenced_lock.epoch AS e), '-'),
        array_to_string(array_fill(our_token, ARRAY[cardinality(keys)]), ' '));
    END $$;
    CREATE OR REPLACE FUNCTION fenced_lock.admit(
        our_key text, our_holder uuid, attempt uuid, lease_time integer, work_time integer, wait_time integer, room integer
      ) RETURNS text
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
      SELECT fenced_lock.admit(ARRAY[our_key], ARRAY[our_holder], attempt, lease_time, work_time, wait_time, room) || ' -'
    $$`);
}
