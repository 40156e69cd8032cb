import { DEFAULTS } from '../../options/options.js';
import { type Check, type Finding, fault, ok, warning } from './check.js';
import type { PostgresSubject } from './subject.js';

interface Limit {
  readonly setting: string;
  /** A shorter value is reported; milliseconds. */
  readonly least: number;
  readonly report: typeof fault | typeof warning;
  readonly because: string;
}

const LIMITS: readonly Limit[] = [
  {
    setting: 'idle_in_transaction_session_timeout',
    least: Math.ceil(DEFAULTS.leaseTime / 3),
    report: fault,
    because:
      'a healthy holder that awaits something else is ended before the renewal, at a third of the lease, keeps it',
  },
  {
    setting: 'transaction_timeout',
    least: DEFAULTS.timeout,
    report: warning,
    because: 'work is ended before its `timeout` of 30 s',
  },
  {
    setting: 'statement_timeout',
    least: 1_000,
    report: warning,
    because: 'an admission is ended that waits for the row of its key, for half a second each time',
  },
];

/**
 * The settings in force for a role in this database, in milliseconds. Settings of the role override those of the
 * database.
 */
const IN_FORCE = `
WITH role AS (SELECT coalesce($1::text, current_user::text) AS name),
set_for AS (
  SELECT split_part(c.entry, '=', 1) AS name, split_part(c.entry, '=', 2) AS value,
    (s.setrole <> 0)::integer * 2 + (s.setdatabase <> 0)::integer AS weight
  FROM pg_db_role_setting AS s, unnest(s.setconfig) AS c(entry)
  WHERE s.setrole IN (0, (SELECT r.oid FROM pg_roles AS r, role WHERE r.rolname = role.name))
    AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))
)
SELECT p.name, CASE WHEN v.value ~ '^[0-9]+$' THEN v.value::numeric ELSE extract(epoch FROM v.value::interval) * 1000 END::text AS ms
FROM pg_settings AS p
CROSS JOIN role
LEFT JOIN LATERAL (SELECT s.value FROM set_for AS s WHERE s.name = p.name ORDER BY s.weight DESC LIMIT 1) AS own ON true
CROSS JOIN LATERAL (SELECT CASE
  WHEN role.name = current_user THEN p.reset_val
  WHEN own.value IS NOT NULL THEN own.value
  WHEN p.source IN ('user', 'database user', 'client') THEN p.boot_val
  ELSE p.reset_val END) AS v(value)
WHERE p.name = ANY ($2::text[])`;

const timeouts: Check<PostgresSubject> = {
  name: 'timeouts',
  async look({ ask, role }) {
    const names = LIMITS.map(({ setting }) => setting);
    const rows = await ask<{ name: string; ms: string }>(IN_FORCE, [role, names]);
    const short = LIMITS.flatMap(({ setting, least, report, because }): Finding[] => {
      const ms = Number(rows.find(({ name }) => name === setting)?.ms ?? 0);
      // 0 means no limit.
      if (ms === 0 || ms >= least) return [];
      return [
        report(`${setting} is ${ms} ms: ${because}.`, `ALTER ROLE … SET ${setting} = '${least}ms' or more, or 0`),
      ];
    });
    return short.length > 0 ? short : ok('None that is too short.');
  },
};

const replication: Check<PostgresSubject> = {
  name: 'replicas',
  async look({ ask }) {
    const [row] = await ask<{ standbys: number; names: string }>(
      `SELECT (SELECT count(*)::integer FROM pg_stat_replication) AS standbys,
         current_setting('synchronous_standby_names') AS names`,
    );
    if (!row?.standbys) return ok('No standby is connected.');
    if (row.names !== '') return ok(`${row.standbys} connected, with synchronous replication.`);
    return ok(
      `${row.standbys} connected, asynchronous: a failover may lose the last commits, and these locks with them.`,
    );
  },
};

export const roleChecks = [timeouts, replication];
