import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import type { MigrationList, SchemaEngine, SchemasContainer } from '@prisma/schema-engine-wasm';
import * as glue from '@prisma/schema-engine-wasm/schema_engine_bg';
import pg from 'pg';
import { partsOf } from './database.js';

interface Utils {
  readonly ColumnTypeEnum: { readonly Character: 6 };
  bindMigrationAwareSqlAdapterFactory(factory: object): object;
}

/** What the adapter itself is made of. */
const utils: Utils = createRequire(createRequire(import.meta.url).resolve('@prisma/adapter-pg'))(
  '@prisma/driver-adapter-utils',
);

const CATALOG_CHAR = 18;
const CHAR = 1042;

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>;

interface Insides {
  performIO(query: object): Promise<{ fields: Array<{ dataTypeID: number }> }>;
}

/** Makes the adapter fit for the engine, in the two things that only `prisma migrate` needs. */
function migrationAware(adapter: Adapter): Adapter {
  const inside = adapter as unknown as Insides;
  const performIO = inside.performIO.bind(inside);
  const queryRaw = adapter.queryRaw.bind(adapter);
  // The engine asks one thing after the other, so the last answer is that of the query.
  let characters: number[] = [];
  const mended = {
    // The catalog has columns of the type "char", which the adapter does not know. They are read as text …
    performIO: async (query: object) => {
      const result = await performIO(query);
      characters = result.fields.flatMap(({ dataTypeID }, index) => (dataTypeID === CATALOG_CHAR ? index : []));
      for (const index of characters) Object.assign(result.fields[index] ?? {}, { dataTypeID: CHAR });
      return result;
    },
    // … and handed on as the one character that they are.
    queryRaw: async (query: Parameters<Adapter['queryRaw']>[0]) => {
      const result = await queryRaw(query);
      const type = (column: (typeof result.columnTypes)[number], index: number) =>
        characters.includes(index) ? utils.ColumnTypeEnum.Character : column;
      return { ...result, columnTypes: result.columnTypes.map(type) };
    },
    // The adapter cuts a script at every semicolon, functions included. The engine that the Prisma command downloads
    // sends it as it is, in one transaction, and so does this.
    executeScript: async (script: string) => void (await (adapter.underlyingDriver() as pg.Pool).query(script)),
  };
  Object.assign(adapter, mended);
  return adapter;
}

function adapterFactory(pool: pg.Pool): object {
  const factory = new PrismaPg(pool);
  return utils.bindMigrationAwareSqlAdapterFactory({
    provider: factory.provider,
    adapterName: factory.adapterName,
    connect: async () => migrationAware(await factory.connect()),
    // The adapter's own drops it while it is still connected to it.
    connectToShadowDb: async () => {
      const database = `shadow_${randomUUID().replaceAll('-', '')}`;
      await pool.query(`CREATE DATABASE ${database}`);
      const shadow = new pg.Pool({ ...pool.options, database });
      return Object.assign(migrationAware(await new PrismaPg(shadow).connect()), {
        dispose: async () => {
          await shadow.end();
          await pool.query(`DROP DATABASE ${database} WITH (FORCE)`);
        },
      });
    },
  });
}

/** The global of Node, which @types/node leaves to the DOM's library. */
interface WebAssemblyGlobal {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: object };
}

/** Where the engine leaves its last words. */
Object.assign(globalThis, { PRISMA_WASM_PANIC_REGISTRY: { set_message: (message: string) => console.error(message) } });

/** The package's own entry imports the .wasm file, which needs a bundler. This is what the import would do. */
function load(): typeof SchemaEngine {
  const { WebAssembly } = globalThis as unknown as { WebAssembly: WebAssemblyGlobal };
  const entry = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm');
  const module = new WebAssembly.Module(readFileSync(entry.replace(/\.js$/, '_bg.wasm')));
  const { exports } = new WebAssembly.Instance(module, { './schema_engine_bg.js': glue });
  const loaded = glue as unknown as { __wbg_set_wasm(exports: object): void; SchemaEngine: typeof SchemaEngine };
  loaded.__wbg_set_wasm(exports);
  (exports as { __wbindgen_start(): void }).__wbindgen_start();
  return loaded.SchemaEngine;
}

const Engine = load();
const NO_FILTER = { externalTables: [], externalEnums: [] };

/** Prisma's own schema engine, which `prisma migrate` runs, without the download: on a database of the tests. */
export async function schemaEngine(url: string, schema: SchemasContainer) {
  const datamodels = schema.files.map(({ path, content }): [string, string] => [path, content]);
  const pool = new pg.Pool(partsOf(url));
  pool.on('error', () => {});
  const engine = await Engine.new({ datamodels }, () => {}, adapterFactory(pool));
  return {
    /** `prisma migrate deploy`. Returns the migrations that were applied now. */
    deploy: async (migrationsList: MigrationList) =>
      (await engine.applyMigrations({ migrationsList, filters: NO_FILTER })).appliedMigrationNames,
    /** `prisma migrate resolve --applied`. */
    resolve: async (migrationsList: MigrationList, migrationName: string) =>
      void (await engine.markMigrationApplied({ migrationsList, migrationName })),
    /** `prisma migrate reset`, before it deploys: drops the schemas that Prisma knows, and no other. */
    reset: () => engine.reset({ filter: NO_FILTER }),
    /** `prisma db push`. Returns how many steps that took. */
    push: async () => (await engine.schemaPush({ force: false, schema, filters: NO_FILTER })).executedSteps,
    /** What `prisma migrate dev` would ask of its user, drift included. */
    dev: (migrationsList: MigrationList) => engine.devDiagnostic({ migrationsList, filters: NO_FILTER }),
    /** What `prisma migrate dev` would write next: a script, empty if nothing differs. */
    next: async (migrationsList: MigrationList) =>
      (await diff(engine, { tag: 'migrations', ...migrationsList }, { tag: 'schemaDatamodel', ...schema })).trim(),
    /** The script that makes a database for this schema. */
    fromNothing: () => diff(engine, { tag: 'empty' }, { tag: 'schemaDatamodel', ...schema }),
    async close() {
      engine.free();
      await pool.end();
    },
  };
}

type DiffTarget = Parameters<SchemaEngine['diff']>[0]['from'];

async function diff(engine: SchemaEngine, from: DiffTarget, to: DiffTarget): Promise<string> {
  return (await engine.diff({ from, to, script: true, exitCode: null, filters: NO_FILTER })).stdout ?? '';
}

export function readSchema(folder: string): SchemasContainer {
  const names = readdirSync(folder).filter((name) => name.endsWith('.prisma'));
  return {
    files: names.map((name) => ({ path: join(folder, name), content: readFileSync(join(folder, name), 'utf8') })),
  };
}

export function readMigrations(baseDir: string): MigrationList {
  const folders = readdirSync(baseDir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return {
    baseDir,
    lockfile: { path: 'migration_lock.toml', content: readFileSync(join(baseDir, 'migration_lock.toml'), 'utf8') },
    shadowDbInitScript: '',
    migrationDirectories: folders
      .map(({ name }) => name)
      .sort()
      .map((name) => ({
        path: name,
        migrationFile: {
          path: 'migration.sql',
          content: { tag: 'ok', value: readFileSync(join(baseDir, name, 'migration.sql'), 'utf8') },
        },
      })),
  };
}
