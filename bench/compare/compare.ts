import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.js';
import type { Contestant } from '../contestants/contestant.js';
import { stamp } from '../measure/stamp.js';
import type { Stage } from '../servers.js';
import { CALLERS, Crew } from './crew.js';
import type { Strike } from './faults.js';
import type { Told } from './shop.worker.js';

/** Of all contestants; ms. */
export const LEASE_TIME = 1_000;
/** How long a process or Redis is frozen; ms. */
const FROZEN_FOR = 1.5 * LEASE_TIME;
/** After a fault, before the next one: what it loses is lost by then; ms. */
const CALM = 500;
/** Until Postgres has ended the sessions of processes that are gone; ms. */
const GONE_WITHIN = 30_000;
/** The sessions of the application's role are those of the processes. */
const SESSIONS = `FROM pg_stat_activity WHERE usename = 'shop_app' AND datname = current_database()`;

export interface Terms {
  readonly seconds: number;
  readonly strikes: readonly Strike[];
}

/** What became of one contestant. */
export interface Outcome {
  readonly contestant: string;
  /** Orders. */
  readonly sales: number;
  /** The faults that struck in the middle of a sale. */
  readonly struck: readonly string[];
  /** Orders whose write was overwritten, under the name of the latest fault. */
  readonly lost: Readonly<Record<string, number>>;
  /** Told as sold without an order, or as failed with one. */
  readonly wrong: readonly string[];
  /** Sales whose callers heard nothing of them, those not counted whose process was killed by a fault. */
  readonly unanswered: number;
  /** What the processes wrote that ended by themselves. */
  readonly died: readonly string[];
  /** The longest time in which nobody sold anything; seconds. */
  readonly standstill: number;
  readonly errors: readonly string[];
}

/** Before the first fault. */
export const NO_FAULT = 'no fault';

/** Sells by one contestant while the faults strike, and looks what the books say. */
export async function compare(stage: Stage, contestant: Contestant, { seconds, strikes }: Terms): Promise<Outcome> {
  const rows = await stage.rows(contestant, 1);
  const [id = Number.NaN] = rows.ids;
  const admin = stage.admin(contestant.shop);
  const lost: Record<string, number> = {};
  const struck: string[] = [];
  let latest = NO_FAULT;
  let lostBefore = 0;
  const settle = async () => {
    const now = await rows.lost();
    lost[latest] = (lost[latest] ?? 0) + now - lostBefore;
    lostBefore = now;
  };

  const crew = await Crew.start({ site: stage.site, contestant: contestant.name, id, leaseTime: LEASE_TIME });
  try {
    const start = stamp();
    const until = (at: number) => sleep(Math.max(0, start + at - stamp()));
    const world = {
      redis: stage.redis,
      lasts: FROZEN_FOR,
      endSessions: () => admin.query(`SELECT pg_terminate_backend(pid) ${SESSIONS}`),
    };
    for (const { at, fault, place } of strikes) {
      await until(at);
      await settle();
      latest = fault.name;
      const scene = { ...world, replace: () => crew.hire(place) };
      if (await crew.inTheMiddle(place, (worker) => fault.strike({ ...scene, worker }))) struck.push(fault.name);
      await sleep(CALM);
    }
    await until(seconds * 1_000);
    const end = stamp();
    await crew.stop();
    const gone = async () => (await admin.query(`SELECT ${SESSIONS}`)).rowCount === 0;
    await eventually('the sessions of the processes have ended', gone, { within: GONE_WITHIN, every: 50 });
    await settle();
    const orders = await admin.query<{ buyer: string }>('SELECT buyer FROM "Order" WHERE "stockId" = $1', [id]);
    const { told, died } = crew;
    return {
      contestant: contestant.name,
      sales: orders.rows.length,
      struck,
      lost,
      wrong: toldWrong(told, new Set(orders.rows.map(({ buyer }) => buyer))),
      unanswered: told.filter(({ outcome }) => outcome === 'hung').length + died.length * CALLERS,
      died,
      standstill: standstill(told, end) / 1_000,
      errors: told.flatMap(({ error }) => error ?? []),
    };
  } finally {
    await crew.kill();
  }
}

function toldWrong(told: readonly Told[], made: ReadonlySet<string>): string[] {
  const wrong = told.filter(({ buyer, outcome }) => outcome === (made.has(buyer) ? 'failed' : 'sold'));
  return wrong.map(({ error }) => (error === undefined ? 'sold, without an order' : `failed, with an order: ${error}`));
}

function standstill(told: readonly Told[], end: number): number {
  const times = told.flatMap(({ outcome, at }) => (outcome === 'sold' && at < end ? at : [])).sort((a, b) => a - b);
  const gaps = [...times.slice(1), end].map((at, index) => at - (times[index] ?? Number.NaN));
  return Math.max(...gaps);
}
