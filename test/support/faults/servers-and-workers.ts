import pg from 'pg';
import { guardedDir } from '../../../src/addons/testing/servers/guard.js';
import { namesOf } from '../../../src/redis/names.js';
import {
  askServer,
  type ClusterGroup,
  type FailoverGroup,
  type PostgresServer,
  type RedisGroup,
  type RedisServer,
  startPostgres,
  wallClock,
} from '../servers/index.js';
import { setUpShop } from '../shop-database.js';
import { TOPOLOGIES, type Topology } from '../topologies.js';
import { Actor } from './actor.js';
import { monotonic } from './clock.js';
import type { Trouble } from './history.js';
import type { Product } from './messages.js';
import type { FaceName } from './ways/face.js';

const WORKERS = 3;

/** As add-fence puts it. */
const GUARD = `
  CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON "Stock"
    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', 'allow')`;

/** What a database has in which nobody ran add-fence. */
const NO_FENCE = 'ALTER TABLE "Stock" DROP COLUMN fence';

/** As the package has it by default. */
const DEFAULT_PREFIX = 'fenced-lock:';

export interface StageOptions {
  /** The writes of the fenced model are judged by the database, and otherwise by the client. */
  readonly guard?: boolean;
  /** Whether the table has the column of a fence. Default: true. */
  readonly fenced?: boolean;
  /** `memory`: no Redis, and one process, whose clients share a memory store. */
  readonly topology?: Topology | 'memory';
  /** Whether the adapter has a pool of pg. Default: true. */
  readonly pooled?: boolean;
  /** Of the first worker, the second, and so on in turn. Default: what `FENCED_LOCK_FACE` says, and otherwise `prisma`. */
  readonly faces?: readonly FaceName[];
}

/** Servers of its own, to be hurt, and workers on them. */
export class Stage {
  readonly troubles: Trouble[] = [];
  readonly #directory = guardedDir('faults');
  /** The last one that was made. */
  #product = '';

  static async open({
    guard = false,
    fenced = true,
    topology = TOPOLOGIES.single,
    pooled = true,
    faces = [(process.env['FENCED_LOCK_FACE'] ?? 'prisma') as FaceName],
  }: StageOptions = {}): Promise<Stage> {
    const inMemory = topology === 'memory';
    const [postgres, group] = await Promise.all([
      startPostgres({ settings: { log_min_messages: 'fatal' }, env: wallClock }),
      inMemory ? undefined : topology.start(),
    ]);
    const databaseUrl = await setUpShop(postgres);
    const stage = new Stage(postgres, group);
    if (guard) await stage.database.query(GUARD);
    if (!fenced) await stage.database.query(NO_FENCE);
    const onExit = (worker: string, what: string) => stage.troubles.push({ worker, at: monotonic(), what });
    const names = Array.from({ length: inMemory ? 1 : WORKERS }, (_, index) => `w${index + 1}`);
    const open = (name: string, index: number) =>
      Actor.open(
        name,
        { databaseUrl, group },
        {
          wake: (inMemory ? undefined : topology.wake) ?? 'pubsub',
          // All in one order of their own, beside processes that share theirs.
          fairness: index === WORKERS - 1 ? 'strict' : 'process',
          fenced,
          pooled,
          face: faces[index % faces.length] as FaceName,
          onExit,
          onHandedOver: (given) => stage.actors[(index + 1) % names.length]?.tell(given),
        },
      );
    stage.actors.push(...(await Promise.all(names.map(open))));
    return stage;
  }

  /** As a superuser and past every line, for the checker and for faults. */
  readonly database: pg.Pool;
  readonly actors: Actor[] = [];

  readonly #group: RedisGroup | undefined;

  private constructor(
    readonly postgres: PostgresServer,
    group: RedisGroup | undefined,
  ) {
    this.#group = group;
    this.database = new pg.Pool({ connectionString: postgres.url, max: 4 });
    // The servers go down on purpose.
    this.database.on('error', () => {});
  }

  /** All that is Redis. */
  get group(): RedisGroup {
    if (this.#group === undefined) throw new Error('leases are in the memory of the process');
    return this.#group;
  }

  /** What stands in the report. */
  get about(): string {
    return this.#group?.about ?? 'a memory store';
  }

  get directory(): string {
    return this.#directory.path;
  }

  /** The one Redis. */
  get redis(): RedisServer {
    const [redis, ...others] = this.group.nodes;
    if (redis === undefined || others.length > 0) throw new Error('there are several nodes');
    return redis;
  }

  /** The nodes that stand in for each other. */
  get failovers(): FailoverGroup {
    if (!('failOver' in this.group)) throw new Error('no node takes over from another one');
    return this.group as FailoverGroup;
  }

  get cluster(): ClusterGroup {
    if (!('reshard' in this.group)) throw new Error('this is no Cluster');
    return this.group as ClusterGroup;
  }

  /** The name in Redis of a lease that all want at the moment. */
  get leaseName(): string {
    return namesOf(DEFAULT_PREFIX, this.#product).lease;
  }

  /** A command to each node that answers; a replica may refuse it. */
  async tellNodes(...words: [string, ...string[]]): Promise<void> {
    await Promise.allSettled(this.group.nodes.map(({ url }) => askServer(url, ...words)));
  }

  /** The names of the leases on all nodes, or the keys in the memory of each process. */
  async leases(): Promise<string[]> {
    if (this.#group === undefined) return (await Promise.all(this.actors.map((actor) => actor.leases()))).flat();
    const found = await Promise.all(this.group.nodes.map(({ url }) => askServer(url, 'KEYS', '*:lease')));
    return [...new Set((found as string[][]).flat())];
  }

  async product(name: string): Promise<Product> {
    const { rows } = await this.database.query<{ id: number }>(
      'INSERT INTO "Stock" (product, quantity) VALUES ($1, 0) RETURNING id',
      [name],
    );
    this.#product = name;
    return { key: name, id: Number(rows[0]?.id) };
  }

  async close(): Promise<void> {
    await Promise.all(this.actors.map((actor) => actor.close()));
    await this.database.end();
    await Promise.all([this.postgres.stop(), this.#group?.stop()]);
    this.#directory.remove();
  }
}
