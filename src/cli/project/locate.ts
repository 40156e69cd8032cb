import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Context } from '../context.js';
import { Problem } from '../problem.js';
import { firstThatExists, readConfig } from './config.js';
import { type History, readHistory } from './migration-history.js';
import { type Datasource, readDatasource, readModels, type SchemaModel } from './schema.js';

/** A Prisma project: its schema and its migrations. */
export interface Project {
  /** The files of the schema by path, sorted by name. */
  readonly schema: ReadonlyMap<string, string>;
  readonly models: readonly SchemaModel[];
  readonly datasource: Datasource | undefined;
  readonly history: History;
}

export interface ProjectOptions {
  /** File or folder of the schema. It overrides the config. */
  readonly schema?: string;
  /** Path of the Prisma config. */
  readonly config?: string;
}

/** Nothing here is Prisma's: the tables may come from another tool. */
export class NoProject extends Problem {
  override readonly name = 'NoProject';
}

/** Prisma's order. Prisma uses the last place only if a config names it. */
const SCHEMA_PLACES = ['schema.prisma', join('prisma', 'schema.prisma'), join('prisma', 'schema')];

/** Reads schema and migrations where Prisma finds them, and reports the paths. @throws Problem */
export async function openProject(context: Context, options: ProjectOptions): Promise<Project> {
  const config = await readConfig(context, options.config);
  const given = options.schema === undefined ? config?.schema : resolve(context.cwd, options.schema);
  const root = options.config === undefined ? context.cwd : dirname(resolve(context.cwd, options.config));
  const place = given ?? (await firstThatExists(SCHEMA_PLACES.map((path) => join(root, path))));
  if (place === undefined) {
    throw new (config === undefined ? NoProject : Problem)(
      `There is no Prisma schema here: none of ${SCHEMA_PLACES.join(', ')} exists. Name it with --schema, or run this ` +
        'in the folder of your package.json.',
      { remedy: 'Without Prisma: npx fenced-lock sql prints what a migration needs.' },
    );
  }
  const schema = await readSchema(context, place);
  const datasource = readDatasource(schema);
  const { provider = 'postgresql' } = datasource ?? {};
  if (datasource && !/^postgres(ql)?$/.test(provider)) {
    throw new Problem(
      `The datasource in ${context.shown(datasource.file)} is ${provider}, and these locks need PostgreSQL: ` +
        'provider = "postgresql".',
    );
  }
  // Prisma has the migrations folder beside the file with the datasource.
  const folder = datasource ? dirname(datasource.file) : schema.has(place) ? dirname(place) : place;
  const migrations = config?.migrations?.path ?? join(folder, 'migrations');
  context.uses({ config: config?.file ?? null, schema: place, migrations });
  return { schema, models: readModels(schema), datasource, history: await readHistory(context, migrations) };
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
