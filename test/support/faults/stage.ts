import { Redis } from 'ioredis';
import pg from 'pg';
import { guardedDir } from '../servers/guard.js';
import { type PostgresServer, type RedisServer, startPostgres, startRedis } from '../servers/index.js';
import { setUpShop } from '../shop-database.js';
import { Actor } from './actor.js';
import { monotonic } from './clock.js';
import type { Trouble } from './history.js';
import type { Product } from './messages.js';

const WORKERS = 3;

/** As add-fence puts it. */
const GUARD = `
  CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON "Stock"
    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', 'allow')`;

/** Servers of its own, to be hurt, and workers on them. */
export class Stage {
  readonly troubles: Trouble[] = [];
  readonly #directory = guardedDir('faults');

  /** `guard`: the writes of the fenced model are judged by the database, and otherwise by the client. */
  static async open({ guard = false } = {}): Promise<Stage> {
    const [postgres, redis] = await Promise.all([
      startPostgres({ settings: { log_min_messages: 'fatal' } }),
      startRedis({ args: ['--maxmemory-policy', 'allkeys-random'] }),
    ]);
    const databaseUrl = await setUpShop(postgres);
    const stage = new Stage(postgres, redis);
    if (guard) await stage.database.query(GUARD);
    const urls = { databaseUrl, redisUrl: redis.url };
    const onExit = (worker: string, what: string) => stage.troubles.push({ worker, at: monotonic(), what });
    const names = Array.from({ length: WORKERS }, (_, index) => `w${index + 1}`);
    const open = (name: string, index: number) =>
      Actor.open(name, urls, {
        // All in one order of their own, beside processes that share theirs.
        fairness: index === WORKERS - 1 ? 'strict' : 'process',
        onExit,
        onHandedOver: (given) => stage.actors[(index + 1) % WORKERS]?.tell(given),
      });
    stage.actors.push(...(await Promise.all(names.map(open))));
    return stage;
  }

  /** As a superuser and past every line, for the checker and for faults. */
  readonly database: pg.Pool;
  readonly leases: Redis;
  readonly actors: Actor[] = [];

  private constructor(
    readonly postgres: PostgresServer,
    readonly redis: RedisServer,
  ) {
    this.database = new pg.Pool({ connectionString: postgres.url, max: 4 });
    // The servers go down on purpose.
    this.database.on('error', () => {});
    this.leases = new Redis(redis.url, { maxRetriesPerRequest: null });
    this.leases.on('error', () => {});
  }

  get directory(): string {
    return this.#directory.path;
  }

  async product(name: string): Promise<Product> {
    const { rows } = await this.database.query<{ id: number }>(
      'INSERT INTO "Stock" (product, quantity) VALUES ($1, 0) RETURNING id',
      [name],
    );
    return { key: name, id: Number(rows[0]?.id) };
  }

  async close(): Promise<void> {
    await Promise.all(this.actors.map((actor) => actor.close()));
    this.leases.disconnect();
    await this.database.end();
    await Promise.all([this.postgres.stop(), this.redis.stop()]);
    this.#directory.remove();
  }
}
