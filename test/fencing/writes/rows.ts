import type pg from 'pg';
import { type Fenced, FRESHER, TABLES } from '../../support/fence-world.js';

/** The rows that one cell works on. Every cell has its own, so that cells do not meet. */
export interface Rows {
  readonly n: number;
  readonly team: number;
  readonly boss: number;
  readonly Member: number;
  /** Of no team, no desk, no badge. */
  readonly loner: number;
  readonly visit: number;
  readonly Desk: number;
  readonly Badge: number;
  readonly Note: number;
  readonly Tag: number;
  readonly Mascot: number;
  readonly Word: number;
  readonly word: number;
}

/** A pool, or one session of it. */
export interface Querying {
  query<R extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<pg.QueryResult<R>>;
}

let count = 0;

export async function makeRows(admin: Querying): Promise<Rows> {
  const n = ++count;
  const one = async (sql: string): Promise<number> => {
    const { rows } = await admin.query<{ id: number }>(sql);
    return rows[0]?.id ?? 0;
  };
  const team = await one(`INSERT INTO people."Team" (name) VALUES ('team ${n}') RETURNING id`);
  const desk = await one(
    `INSERT INTO depot."office furniture" ("desk name", desk_value) VALUES ('desk ${n}', 1) RETURNING desk_id AS id`,
  );
  const boss = await one(`INSERT INTO people."Member" (name, value) VALUES ('boss ${n}', 1) RETURNING id`);
  const loner = await one(`INSERT INTO people."Member" (name, value) VALUES ('loner ${n}', 1) RETURNING id`);
  const member = await one(`INSERT INTO people."Member" (name, value, "teamId", "deskId", "bossId")
    VALUES ('member ${n}', 1, ${team}, ${desk}, ${boss}) RETURNING id`);
  const visit = await one(`INSERT INTO people."Visit" (purpose, "hostId") VALUES ('v', ${member}) RETURNING id`);
  const badge = await one(
    `INSERT INTO people."Badge" (name, value, "memberId") VALUES ('badge ${n}', 1, ${member}) RETURNING id`,
  );
  await admin.query(
    `INSERT INTO people."Note" ("memberId", number, name, value) VALUES (${member}, 1, 'note ${n}', 1)`,
  );
  const tag = await one(`INSERT INTO people."Tag" (name, value) VALUES ('tag ${n}', 1) RETURNING id`);
  await admin.query(`INSERT INTO people."_MemberToTag" VALUES (${member}, ${tag})`);
  await admin.query(`INSERT INTO people._fans VALUES (${boss}, ${member}), (${boss}, ${loner})`);
  const mascot = await one(
    `INSERT INTO people."Mascot" (name, value, "teamId") VALUES ('mascot ${n}', 1, ${team}) RETURNING id`,
  );
  const word = await one(`INSERT INTO people."Word" (name, value) VALUES ('parent ${n}', 1) RETURNING id`);
  const child = await one(
    `INSERT INTO people."Word" (name, value, parent) VALUES ('word ${n}', 1, ${word}) RETURNING id`,
  );
  return {
    n,
    team,
    boss,
    loner,
    visit,
    Member: member,
    Desk: desk,
    Badge: badge,
    Note: member,
    Tag: tag,
    Mascot: mascot,
    Word: child,
    word,
  };
}

export type Row = Readonly<Record<string, unknown>>;
export type Snapshot = ReadonlyMap<string, { readonly model: Fenced; readonly row: Row }>;

/** Every fenced row of this cell, as it is. */
export async function snapshot(admin: Querying, { n }: Rows): Promise<Snapshot> {
  const found = new Map<string, { model: Fenced; row: Row }>();
  for (const model of Object.keys(TABLES) as Fenced[]) {
    const { name, id } = TABLES[model];
    const label = model === 'Desk' ? '"desk name"' : 'name';
    const { rows } = await admin.query<{ key: string; row: Row }>(
      `SELECT ${id} || ':' || ${model === 'Note' ? 'number' : '0'} AS key, to_jsonb(t) AS row
       FROM ${name} t WHERE ${label} LIKE '% ${n}' OR ${label} LIKE 'made ${n} %'`,
    );
    for (const { key, row } of rows) found.set(`${model} ${key}`, { model, row });
  }
  return found;
}

/** The row itself, with everything in it, or `undefined`. */
export async function readRow(admin: Querying, model: Fenced, id: number): Promise<unknown> {
  const { name, id: column } = TABLES[model];
  const { rows } = await admin.query<{ row: unknown }>(`SELECT to_json(t) AS row FROM ${name} t WHERE ${column} = $1`, [
    id,
  ]);
  return rows[0]?.row;
}

export async function fenceOf(admin: Querying, model: Fenced, id: number): Promise<bigint | undefined> {
  const { name, id: column, fence } = TABLES[model];
  const { rows } = await admin.query<{ fence: string }>(`SELECT ${fence} AS fence FROM ${name} WHERE ${column} = $1`, [
    id,
  ]);
  return rows[0] && BigInt(rows[0].fence);
}

/** What a holder of another key did: a later token, and a value of its own. For `overriding`: the guard lets nobody else set a fence. */
export function raise(model: Fenced, id: number, fence = FRESHER): string {
  const table = TABLES[model];
  return `UPDATE ${table.name} SET ${table.fence} = ${fence}, ${table.value} = 50 WHERE ${table.id} = ${id}`;
}

export function remove(model: Fenced, id: number): string {
  return `DELETE FROM ${TABLES[model].name} WHERE ${TABLES[model].id} = ${id}`;
}

/** The same row again, as an insert makes it: what its fence was is forgotten. */
export async function recreate(admin: pg.Pool, model: Fenced, id: number): Promise<void> {
  const { name, fence, id: column } = TABLES[model];
  const session = await admin.connect();
  try {
    // As a replica: no cascade takes away what hangs from the row.
    await session.query('BEGIN; SET LOCAL session_replication_role = replica');
    const { rows } = await session.query<{ row: object }>(
      `DELETE FROM ${name} t WHERE ${column} = $1 RETURNING to_jsonb(t) AS row`,
      [id],
    );
    await session.query(`INSERT INTO ${name} SELECT (jsonb_populate_record(NULL::${name}, $1)).*`, [
      JSON.stringify({ ...rows[0]?.row, [fence]: 0 }),
    ]);
    await session.query('COMMIT');
  } finally {
    session.release();
  }
}
