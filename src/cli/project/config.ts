import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import type { Context } from '../context.js';
import { codeOf, messageOf, Problem } from '../problem.js';

/** The used part of the Prisma config. Its paths are absolute. */
interface PrismaConfig {
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

/** The usual names, by which a config is noticed where nothing can load it. */
const CONFIG_NAMES = ['prisma7.config', 'prisma.config', '.config/prisma7', '.config/prisma'].flatMap((name) =>
  ['ts', 'js', 'mts', 'mjs', 'cts', 'cjs'].map((ending) => `${name}.${ending}`),
);

/** For `env('DATABASE_URL')` of `prisma/config`, which throws where that is missing. */
const UNSET =
  "Set it in the environment, or in a .env that the config loads: it has to begin with import 'dotenv/config'.";

/** What was read for a run. A config is a program, which must run once. */
const readFor = new WeakMap<Context, Promise<PrismaConfig | undefined>>();

/** The config that the project's own Prisma would use. @throws Problem if it cannot be loaded. */
export function readConfig(context: Context, given: string | undefined): Promise<PrismaConfig | undefined> {
  const config = readFor.get(context) ?? load(context, given);
  readFor.set(context, config);
  return config;
}

async function load(context: Context, given: string | undefined): Promise<PrismaConfig | undefined> {
  const configFile = given === undefined ? undefined : resolve(context.cwd, given);
  const prisma = ofPrisma(context.cwd);
  if (prisma === undefined) {
    const found = configFile ?? (await firstThatExists(CONFIG_NAMES.map((name) => join(context.cwd, name))));
    if (found === undefined) return undefined;
    throw new Problem(`${context.shown(found)} can be read only with Prisma 7 installed: npm install -D prisma@7.`);
  }
  // Prisma chooses the file, because its releases differ in names and order.
  const { config, resolvedPath, error } = await prisma.loadConfigFromFile({ configFile, configRoot: context.cwd });
  if (error !== undefined) {
    const why = error.error === undefined ? error._tag : messageOf(error.error);
    const remedy = /environment variable/i.test(why) ? UNSET : undefined;
    throw new Problem(`${context.shown(resolvedPath ?? 'The Prisma config')} cannot be loaded: ${why}.`, { remedy });
  }
  return resolvedPath === null ? undefined : { ...config, file: resolvedPath };
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

export async function firstThatExists(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    if (await stat(path).then(Boolean, () => false)) return path;
  }
  return undefined;
}
