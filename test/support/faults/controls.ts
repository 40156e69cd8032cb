import type { Fault } from './fault.js';
import type { Stage } from './stage.js';
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
    CREATE OR REPLACE FUNCTION fenced_lock.admit(request jsonb) RETURNS jsonb
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DECLARE our_token constant bigint := nextval('fenced_lock.token');
    BEGIN
      PERFORM fenced_lock.limit_time('idle_in_transaction_session_timeout', 0, (request ->> 'leaseTime')::integer);
      PERFORM fenced_lock.limit_time('statement_timeout', 0, (request ->> 'workTime')::integer);
      PERFORM set_config('fenced_lock.token', our_token::text, true);
      RETURN jsonb_build_object('tokens', (SELECT jsonb_agg(our_token::text) FROM jsonb_array_elements(request -> 'keys')), 'turn', '1', 'xid', pg_current_xact_id()::text,
        'pid', pg_backend_pid(), 'epoch', (SELECT e.id FROM fenced_lock.epoch AS e),
        'isolation', current_setting('transaction_isolation'));
    END $$`);
}
