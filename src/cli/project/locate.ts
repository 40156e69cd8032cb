import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { masked } from '../schema/mask.js';
import { firstThatExists, readConfig, rootOf } from './config.js';

/** A Prisma project: its schema and its migrations folder. */
export interface Project {
  /** The files of the schema by path, sorted by name. */
  readonly schema: ReadonlyMap<string, string>;
  readonly migrations: string;
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
  const migrations = config?.migrations?.path ?? join(folderOfDatasource(schema, place), 'migrations');
  context.uses({ config: config?.file ?? null, schema: place, migrations });
  return { schema, migrations };
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

/** Prisma has the migrations folder beside the file with the datasource. */
function folderOfDatasource(schema: ReadonlyMap<string, string>, place: string): string {
  for (const [file, text] of schema) {
    if (/^[ \t]*datasource[ \t]/m.test(masked(text))) return dirname(file);
  }
  return schema.has(place) ? dirname(place) : place;
}
