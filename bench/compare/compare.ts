import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.js';
import type { Contestant } from '../contestants/contestant.js';
import { stamp } from '../measure/stamp.js';
import type { Rows, Stage } from '../servers.js';
import { Crew } from './crew.js';
import type { Scene, Strike } from './faults.js';
import type { Told } from './shop.worker.js';

/** Of all contestants; ms. */
export const LEASE_TIME = 1_000;
/** How many leases a process or Redis stands still. */
const LEASES_FROZEN = 1.5;
/** After a fault, before the next one; ms. */
const CALM = 500;
/** Until Postgres has ended the sessions of a process that is gone; ms. */
const GONE_WITHIN = 30_000;

export interface Terms {
  readonly seconds: number;
  readonly strikes: readonly Strike[];
}

/** What became of one contestant. */
export interface Outcome {
  readonly contestant: string;
  readonly sales: number;
  /** Orders whose write was overwritten, under the name of the fault before. */
  readonly lost: Readonly<Record<string, number>>;
  /** Told as sold without an order, or as failed with one, or sold twice. */
  readonly wrong: readonly string[];
  /** The faults that found something to strike. */
  readonly struck: readonly string[];
  readonly hung: number;
  /** What the processes wrote that ended by themselves. */
  readonly died: readonly string[];
  /** The longest time in which nobody sold anything; seconds. */
  readonly standstill: number;
  readonly errors: readonly string[];
}

/** Lost before the first fault. */
export const NO_FAULT = 'no fault';

/** Sells by one contestant while the faults strike, and looks what the books say. */
export async function compare(stage: Stage, contestant: Contestant, { seconds, strikes }: Terms): Promise<Outcome> {
  const rows = await stage.rows(contestant, 1);
  const [id = Number.NaN] = rows.ids;
  const crew = await Crew.start({ site: stage.site, contestant: contestant.name, id, leaseTime: LEASE_TIME });
  try {
    const admin = stage.admin(contestant.shop);
    const endSessions = () => admin.query(`SELECT pg_terminate_backend(pid) ${SESSIONS}`);
    const lasts = LEASES_FROZEN * LEASE_TIME;
    const scene = { redis: stage.redis, crew, lasts, endSessions };
    const ledger = new Ledger(rows);
    const struck = await hurt(scene, strikes, seconds, ledger);
    const end = stamp();
    await crew.stop();
    const gone = async () => (await admin.query(`SELECT 1 ${SESSIONS}`)).rowCount === 0;
    await eventually('the sessions of the processes have ended', gone, { within: GONE_WITHIN, every: 50 });
    await ledger.settle();
    const { rows: orders } = await admin.query<{ buyer: string }>('SELECT buyer FROM "Order" WHERE "stockId" = $1', [
      id,
    ]);
    const { told, died } = crew;
    return {
      contestant: contestant.name,
      sales: orders.length,
      lost: ledger.lost,
      struck,
      wrong: toldWrong(
        told,
        orders.map(({ buyer }) => buyer),
      ),
      hung: told.filter(({ outcome }) => outcome === 'hung').length,
      died,
      standstill: standstill(told, end),
      errors: told.flatMap(({ error }) => error ?? []),
    };
  } finally {
    await crew.kill();
  }
}

/** The sessions of the application's role here: those of the processes. */
const SESSIONS = `FROM pg_stat_activity WHERE usename = 'shop_app' AND datname = current_database()`;

/** Puts down what is lost to the fault before. */
class Ledger {
  readonly lost: Record<string, number> = {};
  readonly #rows: Rows;
  #before = 0;
  #fault = NO_FAULT;

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  async settle(): Promise<void> {
    const lost = await this.#rows.lost();
    this.lost[this.#fault] = (this.lost[this.#fault] ?? 0) + lost - this.#before;
    this.#before = lost;
  }

  async comes(fault: string): Promise<void> {
    await this.settle();
    this.#fault = fault;
  }
}

async function hurt(scene: Scene, strikes: readonly Strike[], seconds: number, ledger: Ledger): Promise<string[]> {
  const struck: string[] = [];
  const start = stamp();
  const until = (at: number) => sleep(Math.max(0, start + at - stamp()));
  for (const { at, fault, place } of strikes) {
    await until(at);
    await ledger.comes(fault.name);
    if (await fault.strike(scene, place)) struck.push(fault.name);
    await sleep(CALM);
  }
  await until(seconds * 1_000);
  return struck;
}

function toldWrong(told: readonly Told[], orders: readonly string[]): string[] {
  const made = new Set(orders);
  return [
    ...told
      .filter(({ buyer, outcome }) => outcome === (made.has(buyer) ? 'failed' : 'sold'))
      .map(({ error }) => (error === undefined ? 'sold, without an order' : `failed, with an order: ${error}`)),
    ...Array.from({ length: orders.length - made.size }, () => 'one sale, two orders'),
  ];
}

function standstill(told: readonly Told[], end: number): number {
  const times = told.flatMap(({ outcome, at }) => (outcome === 'sold' && at < end ? at : [])).sort((a, b) => a - b);
  const gaps = [...times.slice(1), end].map((at, index) => at - (times[index] ?? Number.NaN));
  return Math.max(...gaps) / 1_000;
}
