import { FROM_PUSH, PUSHED } from '../project/remedies.js';
import { failedMigrations, resolve } from '../servers/failed-migrations.js';
import { type Check, fault, ok, warning } from './check.js';
import type { PostgresSubject } from './subject.js';

const OLDEST = 14;

interface Here {
  readonly pid: number;
  readonly mark: string;
}

const HERE = `SELECT pg_backend_pid() AS pid, current_setting('fenced_lock.doctor', true) AS mark`;

/** Must be the first check, because all others run in a transaction. */
const pooler: Check<PostgresSubject> = {
  name: 'pooler',
  essential: true,
  async look({ database }) {
    const statementMode = fault(
      'A pooler in statement mode is in front of this database, and has no transactions.',
      'Set pool_mode = transaction, or connect directly.',
    );
    try {
      const [first, second] = await database.transaction('BEGIN', async (query) => {
        await query(`SELECT set_config('fenced_lock.doctor', 'here', true)`);
        return [...(await query<Here>(HERE)), ...(await query<Here>(HERE))];
      });
      const one = first?.mark === 'here' && second?.mark === 'here' && first.pid === second.pid;
      return one ? ok('Transactions keep their connection.') : statementMode;
    } catch (error) {
      if (/statement pooling/i.test(String(error))) return statementMode;
      throw error;
    }
  },
};

const version: Check<PostgresSubject> = {
  name: 'version',
  essential: true,
  async look({ ask }) {
    const [row] = await ask<{ number: string; full: string }>(
      `SELECT current_setting('server_version_num') AS number, version() AS full`,
    );
    if (row?.full.includes('CockroachDB')) {
      return fault('This is CockroachDB.', 'Use PostgreSQL: its sequences and locks are what the promises rest on.');
    }
    const major = Math.floor(Number(row?.number) / 10_000);
    if (major >= OLDEST) return ok(`PostgreSQL ${major}.`);
    return fault(
      `PostgreSQL ${major} is older than ${OLDEST}.`,
      `Upgrade the server to PostgreSQL ${OLDEST} or later.`,
    );
  },
};

const writable: Check<PostgresSubject> = {
  name: 'writable',
  async look({ ask }) {
    const [row] = await ask<{ standby: boolean; read_only: boolean }>(
      `SELECT pg_is_in_recovery() AS standby,
        (SELECT reset_val = 'on' FROM pg_settings WHERE name = 'default_transaction_read_only') AS read_only`,
    );
    if (row?.standby) return fault('This server is a standby: it only reads.', 'Connect to the primary.');
    if (row?.read_only) {
      return fault(
        'Transactions are read-only here (default_transaction_read_only).',
        'Set it to off for this role and database.',
      );
    }
    return ok('Writes are possible.');
  },
};

const migrations: Check<PostgresSubject> = {
  name: 'migrations',
  async look({ database, migrates, ask }) {
    const failed = await failedMigrations(database);
    if (failed === undefined && !migrates) return ok('This project has none, as with prisma db push.');
    if (failed === undefined) {
      const [table] = await ask(`SELECT FROM pg_tables WHERE schemaname = $1 LIMIT 1`, [database.schema]);
      if (table === undefined) return warning('Prisma Migrate has no history here.', 'npx prisma migrate deploy');
      return warning(
        'Prisma Migrate has no history here, and there are tables: migrate deploy refuses this database (P3005).',
        `Without migrations: ${PUSHED}. To go over to them: ${FROM_PUSH}`,
      );
    }
    if (failed.length > 0) return fault(`Failed and not resolved: ${failed.join(', ')}.`, resolve(failed));
    return ok('No migration has failed.');
  },
};

const schemas: Check<PostgresSubject> = {
  name: 'schemas',
  async look({ listed }) {
    if (!listed.includes('fenced_lock')) return ok('Prisma leaves the schema fenced_lock alone.');
    return fault(
      'The datasource lists fenced_lock under `schemas`: prisma migrate dev and db push would drop its tables.',
      'Remove it from that list.',
    );
  },
};

export const serverChecks = [pooler, version, writable, migrations, schemas];
