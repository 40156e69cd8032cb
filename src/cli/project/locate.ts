import { readdir, readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Context } from '../context.js';
import { messageOf, Problem } from '../problem.js';
import { masked } from '../schema/mask.js';

/** A Prisma project: its schema, and where its migrations are. */
export interface Project {
  /** The schema's files by their paths, in the order of their names. */
  readonly schema: ReadonlyMap<string, string>;
  readonly migrations: string;
}

export interface ProjectOptions {
  /** File or folder of the schema; wins over everything else. */
  readonly schema?: string;
  /** Path of prisma.config.ts. */
  readonly config?: string;
}

/** What prisma.config.ts says, as far as it matters here. */
interface PrismaConfig {
  readonly schema?: string;
  readonly migrations?: { readonly path?: string };
  readonly datasource?: { readonly url?: string };
}

const CONFIG_NAMES = ['ts', 'mts', 'cts', 'js', 'mjs', 'cjs'].flatMap((ending) => [
  `prisma.config.${ending}`,
  join('.config', `prisma.${ending}`),
]);
const SCHEMA_PLACES = [join('prisma', 'schema.prisma'), 'schema.prisma', join('prisma', 'schema')];

/** Finds schema and migrations where Prisma finds them. @throws Problem */
export async function locate(context: Context, options: ProjectOptions): Promise<Project> {
  const config = await readConfig(context, options);
  const given = options.schema === undefined ? config?.schema : resolve(context.cwd, options.schema);
  const place = given ?? (await firstThatExists(SCHEMA_PLACES.map((path) => join(context.cwd, path))));
  if (place === undefined) {
    throw new Problem(
      `There is no Prisma schema here: none of ${SCHEMA_PLACES.join(', ')} exists. Name it with --schema, or run this ` +
        'in the folder of your package.json.',
    );
  }
  const schema = await readSchema(context, place);
  return { schema, migrations: config?.migrations?.path ?? join(folderOfDatasource(schema, place), 'migrations') };
}

/** The URL of the database that prisma.config.ts names. */
export async function configuredUrl(context: Context, options: ProjectOptions): Promise<string | undefined> {
  return (await readConfig(context, options))?.datasource?.url;
}

export function shown(context: Context, path: string): string {
  return relative(context.cwd, path) || '.';
}

async function readSchema(context: Context, place: string): Promise<Map<string, string>> {
  const kind = await stat(place).catch(() => undefined);
  if (kind === undefined) throw new Problem(`There is no Prisma schema at ${shown(context, place)}.`);
  const files = kind.isDirectory()
    ? (await readdir(place, { recursive: true })).filter((name) => name.endsWith('.prisma')).map((n) => join(place, n))
    : [place];
  if (files.length === 0) throw new Problem(`There is no .prisma file in the folder ${shown(context, place)}.`);
  const read = async (file: string) => [file, await readFile(file, 'utf8')] as const;
  return new Map(await Promise.all(files.sort().map(read)));
}

/** Prisma keeps the migrations beside the file that has the datasource. */
function folderOfDatasource(schema: ReadonlyMap<string, string>, place: string): string {
  for (const [file, text] of schema) {
    if (/^[ \t]*datasource[ \t]/m.test(masked(text))) return dirname(file);
  }
  return schema.has(place) ? dirname(place) : place;
}

async function readConfig(context: Context, { config }: ProjectOptions): Promise<PrismaConfig | undefined> {
  const file = config === undefined ? undefined : resolve(context.cwd, config);
  const found = file ?? (await firstThatExists(CONFIG_NAMES.map((name) => join(context.cwd, name))));
  if (found === undefined) return undefined;
  const name = shown(context, found);
  const loaded = await (await loader(context, name))({ configFile: found, configRoot: context.cwd });
  if (loaded.error !== undefined) {
    const { error, _tag } = loaded.error;
    throw new Problem(`${name} cannot be loaded: ${error === undefined ? _tag : messageOf(error)}`);
  }
  return loaded.config;
}

interface Loaded {
  readonly config?: PrismaConfig;
  readonly error?: { readonly _tag: string; readonly error?: unknown };
}

/** The config is a program, so Prisma's own loader runs it: the one that the project has installed. */
async function loader(context: Context, name: string): Promise<(input: object) => Promise<Loaded>> {
  try {
    const fromProject = createRequire(join(context.cwd, 'package.json'));
    const fromPrisma = createRequire(fromProject.resolve('prisma/package.json'));
    const module: { default: { loadConfigFromFile: (input: object) => Promise<Loaded> } } = await import(
      pathToFileURL(fromPrisma.resolve('@prisma/config')).href
    );
    return module.default.loadConfigFromFile;
  } catch (cause) {
    throw new Problem(`${name} can be read only with Prisma installed: npm install -D prisma@7.`, { cause });
  }
}

async function firstThatExists(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    if (await stat(path).then(Boolean, () => false)) return path;
  }
  return undefined;
}
