import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { applyMigrations } from '../support/servers/index.js';
import { createDatabase, type OwnDatabase } from './database.js';
import { Project, type Ran } from './project.js';

const SCHEMA = `datasource db {
  provider = "postgresql"
}

model Stock {
  id Int @id
}

model Order {
  id     Int    @id
  serial BigInt @default(0)

  @@map("orders")
}
`;
const TABLES = 'CREATE TABLE "Stock" (id int PRIMARY KEY); CREATE TABLE orders (id int PRIMARY KEY, serial bigint);';

interface Finding {
  readonly server: string;
  readonly node?: string;
  readonly check: string;
  readonly status: string;
  readonly message: string;
  readonly remedy?: string;
}

export const findings = ({ json }: Ran) => json['findings'] as Finding[];
export const notOk = (ran: Ran) => findings(ran).filter(({ status }) => status !== 'ok' && status !== 'skipped');

/** A healthy database with its project, for the tests of one file, and copies of it to make ill. */
export class Patient {
  /** A role of an application; its password is `secret-of-doctor`. */
  readonly role = `doctor_${randomUUID().replaceAll('-', '')}`;
  #healthy: OwnDatabase | undefined;
  #project: Project | undefined;

  constructor() {
    beforeAll(() => this.#setUp());
    afterAll(() => this.#tearDown());
  }

  get url(): string {
    return this.#has(this.#healthy).url;
  }

  get project(): Project {
    return this.#has(this.#project);
  }

  doctor(url: string, ...args: string[]): Promise<Ran> {
    return this.project.run('doctor', '--json', '--database-url', url, ...args);
  }

  /** A copy of the healthy database, with something done to it; `$DATABASE` and `$ROLE` are put in. */
  async ill(sql: string): Promise<OwnDatabase> {
    const copy = await createDatabase(this.#has(this.#healthy));
    await copy.pool.query(sql.replaceAll('$DATABASE', copy.name).replaceAll('$ROLE', this.role));
    return copy;
  }

  async #setUp(): Promise<void> {
    const healthy = await createDatabase();
    this.#healthy = healthy;
    const project = new Project({
      'prisma/schema.prisma': SCHEMA,
      'prisma/migrations/20260101000000_tables/migration.sql': TABLES,
    });
    this.#project = project;
    await project.run('init');
    await project.run('add-fence', 'Stock', 'Order');
    await applyMigrations(healthy.url, { dir: project.path('prisma/migrations') });
    await healthy.pool.query('SELECT fenced_lock.start_epoch()');
    await healthy.pool.query(`CREATE ROLE ${this.role} LOGIN PASSWORD 'secret-of-doctor'`);
    // A template must not be in use.
    await healthy.pool.end();
  }

  async #tearDown(): Promise<void> {
    this.#project?.remove();
    await this.#healthy?.[Symbol.asyncDispose]();
    await using other = await createDatabase();
    await other.pool.query(`DROP ROLE IF EXISTS ${this.role}`);
  }

  #has<T>(part: T | undefined): T {
    if (part === undefined) throw new Error('The patient is not here yet: use it in a test or in a hook.');
    return part;
  }
}
