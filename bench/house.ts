import { PrismaPg } from '@prisma/adapter-pg';
import { Redis } from 'ioredis';
import { PrismaClient } from '../test/generated/prisma/client.js';
import { type Contestant, LEASE_TIME, type Seller, type Surroundings } from './contestants/contestant.js';

/** Connections of all contestants, the same for each. */
const POOL = 10;

/** Where the servers are; goes to the workers as it stands. */
export interface Site {
  readonly plain: string;
  readonly guarded: string;
  readonly redis: string;
}

/** What one process has: one client and one pool for each database, one connection to Redis. Opened when asked for. */
export class House implements Surroundings {
  readonly site: Site;
  readonly leaseTime: number;
  /** As its sessions are called in Postgres. */
  readonly name = `bench ${process.pid}`;
  readonly #shops = new Map<Contestant['shop'], PrismaClient>();
  readonly #sellers = new Map<string, Promise<Seller>>();
  #redis: Redis | undefined;

  constructor(site: Site, leaseTime = LEASE_TIME) {
    this.site = site;
    this.leaseTime = leaseTime;
  }

  get prisma(): PrismaClient {
    return this.shop('plain');
  }

  get redis(): Redis {
    this.#redis ??= new Redis(this.site.redis);
    return this.#redis;
  }

  shop(name: Contestant['shop']): PrismaClient {
    const open = this.#shops.get(name);
    if (open !== undefined) return open;
    const shop = this.#open(name);
    this.#shops.set(name, shop);
    return shop;
  }

  #open(name: Contestant['shop']): PrismaClient {
    const settings = { connectionString: this.site[name], max: POOL, application_name: this.name };
    return new PrismaClient({ adapter: new PrismaPg(settings) });
  }

  seller(contestant: Contestant): Promise<Seller> {
    const open = this.#sellers.get(contestant.name);
    if (open !== undefined) return open;
    const seller = Promise.resolve(contestant.open(this));
    this.#sellers.set(contestant.name, seller);
    return seller;
  }

  async close(): Promise<void> {
    for (const seller of this.#sellers.values()) await (await seller).close();
    for (const shop of this.#shops.values()) await shop.$disconnect();
    this.#redis?.disconnect();
  }
}
