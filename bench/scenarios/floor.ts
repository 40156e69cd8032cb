import { randomUUID } from 'node:crypto';
import { ADMIT } from '../../src/fence/sql.js';
import { bareTransaction, withLockAlone } from '../contestants/index.js';
import { oneMoreStatement } from '../contestants/one-more-statement.js';
import { alone } from '../measure/burst.js';
import { interleave } from '../measure/interleave.js';
import { spread, summary } from '../measure/statistics.js';
import { Tally } from '../measure/tally.js';
import { Wire } from '../measure/wire.js';
import type { Table } from '../report/result.js';
import type { Stage } from '../stage.js';
import type { Run, Scenario } from './scenario.js';

export const floor: Scenario = {
  name: 'floor',
  about: 'the statements of a turn alone, without Prisma, and what one statement more costs through it',
  run: async (stage, run) => [await onTheWire(stage, run), await throughPrisma(stage, run)],
};

/** As many as come in the burst of `hot-key`. */
const TURNS = 64;

const READ = 'SELECT quantity FROM "Stock" WHERE id = $1';
const LOCK = `${READ} FOR UPDATE`;
const WRITE = 'UPDATE "Stock" SET quantity = $2 WHERE id = $1';
const WRITE_FENCED = 'UPDATE "Stock" SET quantity = $2, fence = $3 WHERE id = $1 AND fence <= $3';
/** The least that leaves a token and keeps the key: no history, no time limits, no settings for a guard. */
const LEAST = 'UPDATE floor_admission SET token = token + 1 WHERE key = $1 RETURNING token';

const NOTE =
  'Turns of one key, one after the other, in bare messages of the protocol with prepared statements: no Prisma, no pool, no ' +
  'Redis. With an admission BEGIN goes along with it, on another connection, while the COMMIT before is under way: three ' +
  'flights a turn, where the queue takes four.';

async function onTheWire(stage: Stage, run: Run): Promise<Table> {
  await stage
    .admin('plain')
    .query(`CREATE TABLE floor_admission (key text PRIMARY KEY, token bigint) WITH (fillfactor = 50);
    INSERT INTO floor_admission VALUES ('floor', 0)`);
  const wires = [await Wire.open(stage.adminUrl), await Wire.open(stage.adminUrl)] as const;
  const turns = run.size(TURNS, 4);
  const ways = { 'queue + FOR UPDATE': queued, 'the least admission': early(least), 'our admission': early(ours) };
  const tallies = new Map<string, Tally>();
  const contestants: Record<string, () => Promise<unknown>> = {};
  for (const [name, way] of Object.entries(ways)) {
    const tally = await Tally.of(stage, bareTransaction);
    tallies.set(name, tally);
    contestants[name] = async () => {
      await way(wires, String(tally.sale.id), turns);
      tally.add({ ok: turns, failed: {} });
    };
  }
  try {
    const onRound = (round: number) => run.step(`on the wire, round ${round}`);
    const limits = { count: run.size(60, 2), warmUp: run.size(10, 1), budget: 10_000, onRound };
    const rows = table(await interleave(contestants, limits), 'queue + FOR UPDATE', turns);
    const lost = await Promise.all(rows.map(async (row) => await tallies.get(row.turns)?.columns()));
    const title = 'On the wire';
    return { title, note: NOTE, rows: rows.map((row, at) => ({ ...row, ...lost[at] })), chart: CHART };
  } finally {
    await Promise.all(wires.map((wire) => wire.close()));
  }
}

type Wires = readonly [Wire, Wire];

async function queued([wire]: Wires, id: string, turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await wire.send(['BEGIN']);
    const read = await wire.send([LOCK, id]);
    await wire.send([WRITE, id, lower(read)]);
    await wire.send(['COMMIT']);
  }
}

/** `admit` resolves to the token. */
function early(admit: (wire: Wire) => Promise<string>) {
  return async (wires: Wires, id: string, turns: number): Promise<void> => {
    let [wire, other] = wires;
    let token = admit(wire);
    let committed: Promise<unknown> = token;
    for (let turn = 1; turn <= turns; turn++) {
      const fence = await token;
      const read = await wire.send([READ, id]);
      await wire.send([WRITE_FENCED, id, lower(read), fence]);
      committed = wire.send(['COMMIT']);
      [wire, other] = [other, wire];
      if (turn < turns) token = admit(wire);
    }
    await committed;
  };
}

async function least(wire: Wire): Promise<string> {
  const [token] = await wire.send(['BEGIN'], [LEAST, 'floor']);
  return token as string;
}

async function ours(wire: Wire): Promise<string> {
  const times = { leaseTime: 30_000, workTime: 30_000, waitTime: 1_000 };
  const request = { keys: ['floor'], holders: [randomUUID()], attempt: randomUUID(), ...times };
  const [answer] = await wire.send(['BEGIN'], [ADMIT, JSON.stringify(request)]);
  return JSON.parse(answer as string).tokens[0];
}

function lower([quantity]: string[]): string {
  return String(Number(quantity) - 1);
}

async function throughPrisma(stage: Stage, run: Run): Promise<Table> {
  const contestants: Record<string, () => Promise<unknown>> = {};
  const sales = run.size(10, 2);
  for (const contestant of [bareTransaction, oneMoreStatement, withLockAlone]) {
    const seller = await stage.house.seller(contestant);
    const tally = await Tally.of(stage, contestant);
    contestants[contestant.name] = () => alone(seller, tally.sale, sales);
  }
  const onRound = (round: number) => run.step(`through Prisma, round ${round}`);
  const times = await interleave(contestants, {
    count: run.size(80, 2),
    warmUp: run.size(20, 1),
    budget: 15_000,
    onRound,
  });
  return {
    title: 'One statement more, through Prisma',
    note: 'One caller alone. A lock is three commands more than the bare transaction: the look, the admission, the release.',
    rows: table(times, bareTransaction.name, sales),
    chart: CHART,
  };
}

const CHART = { kind: 'bar', label: 'turns', value: 'ratio' } as const;

function table(times: Readonly<Record<string, readonly number[]>>, to: string, turns: number) {
  return Object.entries(times).map(([name, own]) => ({
    turns: name,
    'ms a turn': summary(own).median / turns,
    'middle half': spread(
      own.map((ms) => ms / turns),
      3,
    ),
    ratio: summary(own.map((time, round) => time / (times[to]?.[round] ?? Number.NaN))).median,
  }));
}
