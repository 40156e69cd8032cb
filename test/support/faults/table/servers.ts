import { eventually } from '../../eventually.js';
import { type Fault, lasting, sudden } from '../fault.js';
import type { Stage } from '../servers-and-workers.js';

const command = (...words: [string, ...string[]]): Fault =>
  sudden(words.join(' '), 'redis', (stage) => stage.tellNodes(...words));

/** To the one Redis that all have. */
export const REDIS: readonly Fault[] = [
  command('FLUSHALL'),
  command('SCRIPT', 'FLUSH'),
  command('CLIENT', 'KILL', 'TYPE', 'pubsub'),
  command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
  lasting(
    'Redis killed and restarted empty',
    'redis',
    ({ redis }) => redis.killHard(),
    ({ redis }) => redis.start(),
  ),
  lasting(
    'Redis frozen',
    'redis',
    ({ redis }) => redis.freeze(),
    ({ redis }) => redis.thaw(),
  ),
  // Every command that writes first evicts all there is, leases too, and is then refused.
  lasting(
    'leases evicted under maxmemory',
    'redis',
    (stage) => stage.tellNodes('CONFIG', 'SET', 'maxmemory', '1'),
    (stage) => stage.tellNodes('CONFIG', 'SET', 'maxmemory', '0'),
  ),
];

/** To the one Postgres that all have; to one backend at a certain step: steps.ts. */
export const POSTGRES: readonly Fault[] = [
  sudden('every backend terminated', 'postgres', endBackends),
  sudden('Postgres restarted at once', 'postgres', ({ postgres }) => postgres.restart()),
  lasting(
    'Postgres crashed',
    'postgres',
    ({ postgres }) => postgres.killHard(),
    ({ postgres }) => postgres.start(),
  ),
  lasting(
    'Postgres frozen',
    'postgres',
    ({ postgres }) => postgres.freeze(),
    ({ postgres }) => postgres.thaw(),
  ),
  // Shorter than the workload thinks now and then, and than any lease.
  lasting(
    'idle_in_transaction_session_timeout of the role hit',
    'postgres',
    setIdleLimit("= '30ms'"),
    setIdleLimit('TO DEFAULT'),
  ),
];

function setIdleLimit(value: string) {
  return async (stage: Stage) => {
    await stage.database.query(`ALTER ROLE shop_app SET idle_in_transaction_session_timeout ${value}`);
    // It counts for new sessions.
    await endBackends(stage);
  };
}

async function endBackends({ database }: Stage): Promise<void> {
  await eventually('the database can be asked', () =>
    database
      .query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop_app'")
      .catch(() => undefined),
  );
}
