import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import type { Context } from '../context.js';
import { codeOf, messageOf, Problem } from '../problem.js';

/** The used part of the Prisma config. Its paths are absolute. */
export interface PrismaConfig {
  /** The config file. */
  readonly file: string;
  readonly schema?: string;
  readonly migrations?: { readonly path?: string };
  readonly datasource?: { readonly url?: string };
}

/** The used part of `@prisma/config`. */
interface ConfigModule {
  /** Without `configFile`, looks for the config in `configRoot`, as the `prisma` command does. */
  loadConfigFromFile(input: { configFile: string | undefined; configRoot: string }): Promise<Loaded>;
}

interface Loaded {
  readonly config?: Omit<PrismaConfig, 'file'>;
  /** `null` if there is no config file. */
  readonly resolvedPath: string | null;
  readonly error?: { readonly _tag: string; readonly error?: unknown };
}

const ENDINGS = ['js', 'ts', 'mjs', 'cjs', 'mts', 'cts'];
const named = (base: string) => ENDINGS.map((ending) => `${base}.${ending}`);
/** Where Prisma 7.10 looks, in its order. Older releases do not know the first two kinds. */
const CONFIG_NAMES = [
  ...['prisma7.config', join('.config', 'prisma7')].flatMap(named),
  ...['prisma.config', join('.config', 'prisma'), join('.config', 'prisma.config')].flatMap((base) => [
    ...named(base),
    ...named(join(base, 'index')),
  ]),
];

/** For `env('DATABASE_URL')` of `prisma/config`, which throws where that is missing. */
const UNSET =
  "Set it in the environment, or in a .env that the config loads: it has to begin with import 'dotenv/config'.";

/** What was read for a run, by the paths that were given. A config is a program, which must run once. */
const readFor = new WeakMap<Context, Map<string | undefined, Promise<PrismaConfig | undefined>>>();

/** The config that the project's own Prisma would use. @throws Problem if it cannot be loaded. */
export function readConfig(context: Context, given: string | undefined): Promise<PrismaConfig | undefined> {
  const read = readFor.get(context) ?? new Map<string | undefined, Promise<PrismaConfig | undefined>>();
  readFor.set(context, read);
  const config = read.get(given) ?? load(context, given);
  read.set(given, config);
  return config;
}

async function load(context: Context, given: string | undefined): Promise<PrismaConfig | undefined> {
  const configFile = given === undefined ? undefined : resolve(context.cwd, given);
  const prisma = ofPrisma(context.cwd);
  const found = configFile ?? (await firstThatExists(CONFIG_NAMES.map((name) => join(context.cwd, name))));
  if (prisma === undefined) {
    if (found === undefined) return undefined;
    throw new Problem(`${context.shown(found)} can be read only with Prisma 7 installed: npm install -D prisma@7.`);
  }
  // Prisma chooses the file, because its releases differ in names and order.
  const loaded = await prisma.loadConfigFromFile({ configFile, configRoot: context.cwd });
  if (loaded.error !== undefined) {
    const { error, _tag } = loaded.error;
    const name = found === undefined ? 'The Prisma config' : context.shown(found);
    const why = error === undefined ? _tag : messageOf(error);
    const isUnset = /environment variable/i.test(why);
    throw new Problem(`${name} cannot be loaded: ${why}.`, isUnset ? { remedy: UNSET } : {});
  }
  return loaded.resolvedPath === null ? undefined : { ...loaded.config, file: loaded.resolvedPath };
}

/**
 * The config is a program, so it is run by the loader of the Prisma that is installed in the project. Prisma 8 has no
 * such loader; Prisma 7 may be installed beside it as `@prisma/prisma7`.
 */
function ofPrisma(cwd: string): ConfigModule | undefined {
  for (const way of [['@prisma/prisma7', 'prisma'], ['prisma'], []]) {
    try {
      // Resolve each package from the one before it, as strict package managers require.
      const from = way.reduce(
        (at, name) => createRequire(at).resolve(`${name}/package.json`),
        join(cwd, 'package.json'),
      );
      const module: Partial<ConfigModule> = createRequire(from)('@prisma/config');
      if (module.loadConfigFromFile !== undefined) return module as ConfigModule;
    } catch (error) {
      // Not installed in this way.
      if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  return undefined;
}

/** The folder in which Prisma looks for files that the config does not name. */
export function rootOf(context: Context, config: string | undefined): string {
  return config === undefined ? context.cwd : dirname(resolve(context.cwd, config));
}

export async function firstThatExists(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    if (await stat(path).then(Boolean, () => false)) return path;
  }
  return undefined;
}
