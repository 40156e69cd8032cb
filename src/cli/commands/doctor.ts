import type { Context } from '../context.js';
import { type ModelTable, type PostgresSubject, type Reported, run, type Status } from '../doctor/check.js';
import { fenceChecks } from '../doctor/fences.js';
import { objectChecks, sequenceChecks, serverChecks } from '../doctor/postgres.js';
import { redisChecks } from '../doctor/redis.js';
import { tableName } from '../migrations/identifiers.js';
import { applicationFunctions, objectsIn, packagedScript } from '../migrations/packaged.js';
import { Problem } from '../problem.js';
import { locate, type Project } from '../project/locate.js';
import { History } from '../project/migration-history.js';
import { fenceNameOf } from '../schema/fence-field.js';
import { readModels } from '../schema/models.js';
import { storeOver } from '../servers/locks.js';
import { connectPostgres, postgresLogin } from '../servers/postgres.js';
import { openRedis, redisPlace } from '../servers/redis.js';
import { type DatabaseOptions, databaseUrl, givenRedisUrls, type RedisOptions } from '../servers/urls.js';

export interface DoctorOptions extends DatabaseOptions, RedisOptions {
  readonly role?: string;
  /** Default: the column that the guard of each model checks. */
  readonly field?: string;
  readonly fix?: boolean;
  readonly keyPrefix: string;
}

const COLOURS = { ok: 'green', warning: 'yellow', fault: 'red', skipped: 'dim' } as const satisfies Record<
  Status,
  string
>;
export const CHECKS = [...serverChecks, ...objectChecks, ...fenceChecks, ...sequenceChecks];

/** Checks both servers. Returns whether there is no fault; warnings do not count. */
export async function doctor(context: Context, options: DoctorOptions): Promise<boolean> {
  // Both are looked for before anything is checked, so that what fails at one server does not hide the other.
  const { url: database } = await databaseUrl(context, options);
  const given = await givenRedisUrls(context, options);
  const found = [...(await postgres(context, database, options)), ...(await redis(context, given, options))];
  const faults = found.filter(({ status }) => status === 'fault').length;
  const warnings = found.filter(({ status }) => status === 'warning').length;
  const skipped = found.filter(({ status }) => status === 'skipped');
  context.say();
  context.say(
    `${faults} ${faults === 1 ? 'fault' : 'faults'}, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}${notChecked(skipped)}.`,
  );
  context.document({ command: 'doctor', ok: faults === 0, faults, warnings, skipped: skipped.length, findings: found });
  return faults === 0;
}

/** What was not checked, for the summary: no fault there does not mean that all is well. */
function notChecked(skipped: readonly Reported[]): string {
  // Redis is skipped as a whole.
  const names = skipped.map(({ server, check }) => (server === 'redis' ? 'Redis' : check));
  return names.length === 0 ? '' : `, ${names.length} skipped (${names.join(', ')})`;
}

async function postgres(context: Context, url: string, options: DoctorOptions): Promise<Reported[]> {
  return await asFindings(context, 'postgres', async () => {
    await title(context, 'PostgreSQL', postgresLogin(context, url));
    const database = await connectPostgres(context, url);
    try {
      const { version, sql } = await packagedScript();
      const project = await projectHere(context, options);
      const here = project instanceof Problem ? undefined : project;
      const subject: PostgresSubject = {
        database,
        role: options.role,
        fix: options.fix === true,
        models: project instanceof Problem ? project : modelTables(project, options.field, database.schema),
        migrates: here === undefined || !here.history.isEmpty,
        listed: here?.datasource?.schemas ?? [],
        version,
        objects: objectsIn(sql),
        forApplications: applicationFunctions(sql),
        migration: here?.history.objects,
        ask: (text, values) =>
          database.transaction('BEGIN READ ONLY', async (query) => {
            await query(`SET LOCAL statement_timeout = '30s'`);
            return await query(text, values);
          }),
      };
      return await run('postgres', CHECKS, subject);
    } finally {
      await database.close();
    }
  });
}

async function redis(
  context: Context,
  { urls, reason }: Awaited<ReturnType<typeof givenRedisUrls>>,
  options: DoctorOptions,
): Promise<Reported[]> {
  if (urls.length === 0) {
    context.say();
    await title(context, 'Redis');
    const message = `Not checked. ${reason}`;
    return shown(context, [{ server: 'redis', check: 'connection', status: 'skipped', message }]);
  }
  const found: Reported[] = [];
  for (const url of urls) {
    context.say();
    found.push(...(await oneRedis(context, url, options)));
  }
  return found;
}

async function oneRedis(context: Context, url: string, { keyPrefix }: DoctorOptions): Promise<Reported[]> {
  const server = await openRedis(context, url).catch((failure: unknown) => ({ failure }));
  if (server.failure !== undefined || !('client' in server)) {
    // A server that answers has the titles of its nodes.
    await title(context, 'Redis', redisPlace(context, url));
    return await asFindings(context, 'redis', () => Promise.reject(server.failure));
  }
  const [store, silent] = [storeOver(server.client, keyPrefix), storeOver(server.client, keyPrefix, 'poll')];
  try {
    const found: Reported[] = [];
    for (const { shown: node, key, info } of await server.nodes(keyPrefix)) {
      if (found.length > 0) context.say();
      await title(context, 'Redis', node);
      const look = async () => run('redis', redisChecks, { info: await info(), key, store, silent });
      found.push(...(await asFindings(context, 'redis', look)).map((finding) => ({ ...finding, node })));
    }
    return found;
  } finally {
    await Promise.all([store.close(), silent.close()]);
    await server.close();
  }
}

/** What the findings of a server stand under, those of its connection, too. */
async function title(context: Context, server: string, place: string | Promise<string> = ''): Promise<void> {
  // Whoever connects says what is wrong with a URL that cannot be read.
  const at = await Promise.resolve(place).catch(() => '');
  context.say(context.paint('bold', `${server} ${at}`.trimEnd()));
}

/** Reports a server that cannot be reached as a finding, so that the other server is still checked. */
async function asFindings(
  context: Context,
  server: Reported['server'],
  look: () => Promise<Reported[]>,
): Promise<Reported[]> {
  const found = await look().catch((error: unknown): Reported[] => {
    if (!(error instanceof Problem)) throw error;
    // Without a cause, the message itself says what is wrong with the URL.
    const { cause, remedy = cause === undefined ? undefined : 'Check the URL, the server and the network.' } = error;
    const { message } = error;
    return [{ server, check: 'connection', status: 'fault', message, ...(remedy !== undefined && { remedy }) }];
  });
  return shown(context, found);
}

function shown(context: Context, findings: Reported[]): Reported[] {
  for (const { status, check, message, remedy } of findings) {
    context.say(`  ${context.paint(COLOURS[status], status.padEnd(8))} ${check.padEnd(18)} ${message}`);
    if (remedy !== undefined) context.say(`${' '.repeat(30)}→ ${remedy}`);
  }
  return findings;
}

interface ProjectHere extends Pick<Project, 'schema' | 'datasource'> {
  readonly history: History;
}

/** The project in the working directory, or a Problem that says why there is none. */
async function projectHere(context: Context, options: DoctorOptions): Promise<ProjectHere | Problem> {
  try {
    const { schema, migrations, datasource } = await locate(context, options);
    return { schema, datasource, history: await History.read(context, migrations) };
  } catch (error) {
    // Doctor may run on a server without the project. But a path that was given must be right.
    if (error instanceof Problem && options.schema === undefined && options.config === undefined) return error;
    throw error;
  }
}

/** Each model of the project with its table, and its fence if it has one. */
function modelTables({ schema, history }: ProjectHere, given: string | undefined, defaultSchema: string): ModelTable[] {
  const guards = history.guards();
  return readModels(schema).map((model) => {
    const table = { name: model.table, schema: model.schema };
    const guard = guards.get(table);
    const name = fenceNameOf(model, given, guard);
    const field = model.kind === 'model' ? model.fields.find((each) => each.name === name) : undefined;
    return {
      model: model.name,
      table: tableName({ ...table, schema: table.schema ?? defaultSchema }),
      columns: model.fields.map((each) => each.map ?? each.name),
      fence: field && (field.map ?? field.name),
      guard,
    };
  });
}
