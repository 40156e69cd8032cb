import type { Context } from '../context.js';
import { type Checked, type Compared, type PostgresSubject, run } from '../doctor/check.js';
import { fenceChecks } from '../doctor/fences.js';
import { objectChecks, sequenceChecks, serverChecks } from '../doctor/postgres.js';
import { redisChecks } from '../doctor/redis.js';
import { GUARD } from '../migrations/guard-sql.js';
import { tableName } from '../migrations/identifiers.js';
import { packagedScript } from '../migrations/packaged.js';
import { Problem } from '../problem.js';
import { fencesOf } from '../project/fences.js';
import { guardsAfter } from '../project/guarded-tables.js';
import { NoProject, openProject } from '../project/locate.js';
import { storeOver } from '../servers/locks.js';
import { PostgresServer, withPostgres } from '../servers/postgres.js';
import { RedisServer } from '../servers/redis.js';
import { type ServerOptions, urlOf } from '../servers/urls.js';

export interface DoctorOptions extends ServerOptions {
  readonly role?: string;
  /** Default: the column that the guard of each model checks. */
  readonly field?: string;
  readonly fix?: boolean;
  readonly keyPrefix: string;
}

/** A finding with its server. */
interface Reported extends Checked {
  readonly server: keyof typeof TITLES;
  /** The Redis server, as `host:port`, if it was reached. */
  readonly node?: string;
}

const TITLES = { postgres: 'PostgreSQL', redis: 'Redis' } as const;
const COLOURS = { ok: 'green', warning: 'yellow', fault: 'red', skipped: 'dim' } as const;
export const postgresChecks = { ...serverChecks, ...objectChecks, ...fenceChecks, ...sequenceChecks };

/** Checks both servers. Returns whether there is no fault; warnings do not count. */
export async function doctor(context: Context, options: DoctorOptions): Promise<boolean> {
  // Both are looked for before anything is checked, so that what fails at one server does not hide the other.
  const database = await urlOf(context, options, 'database');
  const redis = await urlOf(context, options, 'Redis').catch((error: unknown) => {
    if (error instanceof Problem) return error;
    throw error;
  });
  const found = await postgres(context, database.urls[0], options);
  if (redis instanceof Problem) {
    const message = `Not checked. ${redis.message}`;
    found.push(...report(context, 'redis', '', [{ check: 'connection', status: 'skipped', message }]));
  } else {
    for (const url of redis.urls) found.push(...(await oneRedis(context, url, options)));
  }
  const count = (status: Reported['status']) => found.filter((each) => each.status === status).length;
  const [faults, warnings] = [count('fault'), count('warning')];
  // No fault there does not mean that all is well. Redis is skipped as a whole.
  const skipped = found.flatMap(({ status, server, check }) =>
    status === 'skipped' ? (server === 'redis' ? 'Redis' : check) : [],
  );
  context.say();
  context.say(
    `${faults} ${faults === 1 ? 'fault' : 'faults'}, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}` +
      `${skipped.length === 0 ? '' : `, ${skipped.length} skipped (${skipped.join(', ')})`}.`,
  );
  context.document({ command: 'doctor', ok: faults === 0, faults, warnings, skipped: skipped.length, findings: found });
  return faults === 0;
}

async function postgres(context: Context, url: string, options: DoctorOptions): Promise<Reported[]> {
  const place = (await PostgresServer.at(context, url).catch(() => undefined))?.shown;
  const look = withPostgres(context, url, async (database) =>
    run(postgresChecks, await subjectOf(context, database, options)),
  );
  return report(context, 'postgres', place, await look.catch(unusable));
}

async function subjectOf(context: Context, database: PostgresServer, options: DoctorOptions): Promise<PostgresSubject> {
  const project = await openProject(context, options).catch((error: unknown) => {
    // Doctor may run on a server without the project. But a path that was given must be right.
    if (error instanceof Problem && options.schema === undefined && options.config === undefined) return error;
    throw error;
  });
  const isNone = project instanceof NoProject;
  const fences = project instanceof Problem ? [] : fencesOf(project, options.field);
  const models = fences.map(({ model, field, guard }): Compared => {
    const { name, schema = database.schema } = model.table;
    const columns = model.fields.map(({ column }) => column);
    return { name: model.name, table: tableName({ name, schema }), columns, fence: field?.column, guard };
  });
  return {
    database,
    role: options.role,
    fix: options.fix === true,
    project,
    models: isNone ? await guardedIn(database) : models,
    way: isNone ? 'other' : project instanceof Problem || !project.history.isEmpty ? 'migrate' : 'push',
    packaged: await packagedScript(),
    ask: (text, values) =>
      database.transaction('BEGIN READ ONLY', async (query) => {
        await query(`SET LOCAL statement_timeout = '30s'`);
        return await query(text, values);
      }),
  };
}

/** The tables that have a guard of their own, also a disabled one; none where they cannot be read, which the checks say. */
async function guardedIn({ query }: PostgresServer): Promise<Compared[]> {
  const sql = `SELECT n.nspname AS schema, c.relname AS name, c.oid::regclass::text AS shown, pg_get_triggerdef(t.oid) AS guard
    FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE t.tgname = $1 AND t.tgparentid = 0 ORDER BY 1, 2`;
  const rows = await query<Record<'schema' | 'name' | 'shown' | 'guard', string>>(sql, [GUARD]).catch(() => []);
  const guardOf = guardsAfter(rows.map(({ guard }) => guard));
  return rows.flatMap(({ shown, ...table }) => {
    const guard = guardOf(table);
    return guard ? [{ name: shown, table: tableName(table), columns: [], fence: guard.column, guard }] : [];
  });
}

async function oneRedis(context: Context, url: string, { keyPrefix }: DoctorOptions): Promise<Reported[]> {
  const server = await RedisServer.at(context, url).catch(unusable);
  if (Array.isArray(server)) return report(context, 'redis', '', server);
  try {
    const failed = await server.connect().catch(unusable);
    if (failed !== undefined) return report(context, 'redis', server.shown, failed);
    const [store, silent] = [storeOver(server.client, keyPrefix), storeOver(server.client, keyPrefix, 'poll')];
    const found: Reported[] = [];
    for (const { shown: node, key, info } of await server.nodes(keyPrefix)) {
      const look = info().then((info) => run(redisChecks, { info, key, store, silent }));
      const ofNode = report(context, 'redis', node, await look.catch(unusable));
      found.push(...ofNode.map((finding) => ({ ...finding, node })));
    }
    await Promise.all([store.close(), silent.close()]);
    return found;
  } finally {
    await server.close();
  }
}

/** A server that cannot be used is a finding, so that the other server is still checked. */
function unusable(error: unknown): Checked[] {
  if (!(error instanceof Problem)) throw error;
  // Without a cause, the message itself says what is wrong with the URL.
  const {
    message,
    cause,
    remedy = cause === undefined ? undefined : 'Check the URL, the server and the network.',
  } = error;
  return [{ check: 'connection', status: 'fault', message, ...(remedy !== undefined && { remedy }) }];
}

/** Shows the findings of a server under its name. */
function report(context: Context, server: Reported['server'], place = '', findings: readonly Checked[]): Reported[] {
  if (server === 'redis') context.say();
  context.say(context.paint('bold', `${TITLES[server]} ${place}`.trimEnd()));
  for (const { status, check, message, remedy } of findings) {
    context.say(`  ${context.paint(COLOURS[status], status.padEnd(8))} ${check.padEnd(18)} ${message}`);
    if (remedy !== undefined) context.say(`${' '.repeat(30)}→ ${remedy}`);
  }
  return findings.map((finding) => ({ server, ...finding }));
}
