import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { type Datasource, readDatasource } from '../schema/datasource.js';
import { firstThatExists, readConfig, rootOf } from './config.js';

/** A Prisma project: its schema and its migrations folder. */
export interface Project {
  /** The files of the schema by path, sorted by name. */
  readonly schema: ReadonlyMap<string, string>;
  readonly migrations: string;
  readonly datasource: Datasource | undefined;
}

export interface ProjectOptions {
  /** File or folder of the schema. It overrides the config. */
  readonly schema?: string;
  /** Path of the Prisma config. */
  readonly config?: string;
}

/** Prisma's order. Prisma uses the last place only if a config names it. */
const SCHEMA_PLACES = ['schema.prisma', join('prisma', 'schema.prisma'), join('prisma', 'schema')];

/** Finds schema and migrations where Prisma finds them, and reports the paths. @throws Problem */
export async function locate(context: Context, options: ProjectOptions): Promise<Project> {
  const config = await readConfig(context, options.config);
  const given = options.schema === undefined ? config?.schema : resolve(context.cwd, options.schema);
  const root = rootOf(context, options.config);
  const place = given ?? (await firstThatExists(SCHEMA_PLACES.map((path) => join(root, path))));
  if (place === undefined) {
    throw new Problem(
      `There is no Prisma schema here: none of ${SCHEMA_PLACES.join(', ')} exists. Name it with --schema, or run this ` +
        'in the folder of your package.json.',
    );
  }
  const schema = await readSchema(context, place);
  const datasource = readDatasource(schema);
  refuseForeign(context, datasource);
  // Prisma has the migrations folder beside the file with the datasource.
  const folder = datasource ? dirname(datasource.file) : folderOf(schema, place);
  const migrations = config?.migrations?.path ?? join(folder, 'migrations');
  context.uses({ config: config?.file ?? null, schema: place, migrations });
  return { schema, migrations, datasource };
}

/** The database URL of the Prisma config. */
export async function configuredUrl(context: Context, { config }: ProjectOptions): Promise<string | undefined> {
  const { file, datasource } = (await readConfig(context, config)) ?? {};
  if (datasource?.url) context.uses({ config: file ?? null });
  return datasource?.url;
}

/** A variable of the environment that the Prisma config has set, as by `import 'dotenv/config'`. @throws Problem */
export async function configuredVariable(
  context: Context,
  name: string,
  { config }: ProjectOptions,
): Promise<string | undefined> {
  const read = await readConfig(context, config);
  const value = context.env[name];
  if (value) context.uses({ config: read?.file ?? null });
  return value;
}

async function readSchema(context: Context, place: string): Promise<Map<string, string>> {
  const kind = await stat(place).catch(() => undefined);
  if (kind === undefined) throw new Problem(`There is no Prisma schema at ${context.shown(place)}.`);
  const files = kind.isDirectory()
    ? (await readdir(place, { recursive: true })).filter((name) => name.endsWith('.prisma')).map((n) => join(place, n))
    : [place];
  if (files.length === 0) throw new Problem(`There is no .prisma file in the folder ${context.shown(place)}.`);
  const read = async (file: string) => [file, await readFile(file, 'utf8')] as const;
  return new Map(await Promise.all(files.sort().map(read)));
}

function folderOf(schema: ReadonlyMap<string, string>, place: string): string {
  return schema.has(place) ? dirname(place) : place;
}

function refuseForeign(context: Context, datasource: Datasource | undefined): void {
  const { provider } = datasource ?? {};
  if (provider === undefined || provider === 'postgresql' || provider === 'postgres') return;
  throw new Problem(
    `The datasource in ${context.shown((datasource as Datasource).file)} is ${provider}, and these locks need PostgreSQL: ` +
      'provider = "postgresql".',
  );
}
