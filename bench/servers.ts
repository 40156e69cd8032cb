import pg from 'pg';
import { type RedisServer, startPostgres, startRedis } from '../test/support/servers/index.js';
import { setUpShop } from '../test/support/shop-database.js';
import type { Contestant } from './contestants/contestant.js';
import { House, type Site } from './house.js';

/** Far more than any run sells. */
const QUANTITY = 1_000_000_000;

const GUARD = `
  CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON "Stock"
    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', 'allow');
  CREATE TRIGGER zzz_fenced_lock_guard_truncate BEFORE TRUNCATE ON "Stock"
    FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate('allow')`;

type Admins = Readonly<Record<Contestant['shop'], pg.Pool>>;

/** Fresh servers for one scenario, the house of this process on them, and a superuser's look at the rows. */
export class Stage {
  readonly servers: string;
  readonly site: Site;
  readonly house: House;
  /** A superuser's, to the database without a guard. */
  readonly adminUrl: string;
  readonly redis: RedisServer;
  readonly #admins: Admins;
  readonly #stopping: () => Promise<unknown>;
  #products = 0;

  private constructor(
    servers: string,
    site: Site,
    adminUrl: string,
    redis: RedisServer,
    admins: Admins,
    stop: () => Promise<unknown>,
  ) {
    this.servers = servers;
    this.site = site;
    this.adminUrl = adminUrl;
    this.redis = redis;
    this.#admins = admins;
    this.#stopping = stop;
    this.house = new House(site);
  }

  /** @param redisOf what starts its Redis */
  static async start(redisOf: () => Promise<RedisServer> = startRedis): Promise<Stage> {
    const [postgres, redis] = await Promise.all([startPostgres(), redisOf()]);
    const stop = () => Promise.all([postgres.stop(), redis.stop()]);
    try {
      const urls = { plain: postgres.url, guarded: await postgres.createDatabase() };
      // One after the other: they make the same role.
      const plain = await setUpShop({ url: urls.plain });
      const guarded = await setUpShop({ url: urls.guarded });
      const admins = {
        plain: new pg.Pool({ connectionString: urls.plain, max: 2 }),
        guarded: new pg.Pool({ connectionString: urls.guarded, max: 2 }),
      };
      for (const admin of Object.values(admins)) admin.on('error', () => {});
      await admins.guarded.query(GUARD);
      const servers = `PostgreSQL ${postgres.version} (${postgres.kind}), Redis ${redis.version} (${redis.kind})`;
      const site = { plain, guarded, redis: redis.url };
      return new Stage(servers, site, urls.plain, redis, admins, stop);
    } catch (error) {
      await stop();
      throw error;
    }
  }

  admin(shop: Contestant['shop']): pg.Pool {
    return this.#admins[shop];
  }

  /** New rows that nobody else uses, their ids in order. */
  async rows({ shop }: Contestant, count: number): Promise<Rows> {
    const { rows } = await this.#admins[shop].query<{ id: number }>(
      `INSERT INTO "Stock" (product, quantity)
       SELECT 'bench ' || $1::integer + i, ${QUANTITY} FROM generate_series(1, $2::integer) AS i RETURNING id`,
      [this.#products, count],
    );
    this.#products += count;
    const ids = rows.map(({ id }) => id).sort((a, b) => a - b);
    return { ids, sold: () => this.#sold(shop, ids), lost: () => this.#lost(shop, ids) };
  }

  async stop(): Promise<void> {
    await this.house.close();
    for (const admin of Object.values(this.#admins)) await admin.end();
    await this.#stopping();
  }

  async #sold(shop: Contestant['shop'], ids: readonly number[]): Promise<number> {
    const { rows } = await this.#admins[shop].query<{ sold: string }>(
      `SELECT sum(${QUANTITY} - quantity) AS sold FROM "Stock" WHERE id = ANY ($1)`,
      [ids],
    );
    return Number(rows[0]?.sold);
  }

  /** By one statement, so of one moment. */
  async #lost(shop: Contestant['shop'], ids: readonly number[]): Promise<number> {
    const { rows } = await this.#admins[shop].query<{ lost: string }>(
      `SELECT (SELECT count(*) FROM "Order" WHERE "stockId" = ANY ($1)) - sum(${QUANTITY} - quantity) AS lost
       FROM "Stock" WHERE id = ANY ($1)`,
      [ids],
    );
    return Number(rows[0]?.lost);
  }
}

export interface Rows {
  readonly ids: readonly number[];
  /** How many units are really gone from them. */
  sold(): Promise<number>;
  /** How many orders of them have no unit that is gone: another write replaced theirs. */
  lost(): Promise<number>;
}
