import { type Fenced, FRESHER, TABLES } from '../../support/fence-world.js';

/** Empties the tables and their sequences, and makes rows of every kind of relation. The ids are in `payloads.ts`. */
const ROWS = `
  DELETE FROM people."Visit"; DELETE FROM people."Member"; DELETE FROM people."Team"; DELETE FROM people."Badge";
  DELETE FROM people."Tag"; DELETE FROM people."Word"; DELETE FROM depot."office furniture";
  INSERT INTO people."Team" VALUES (1, 'team'), (2, 'team without a mascot');
  INSERT INTO depot."office furniture" (desk_id, "desk name", desk_value) VALUES (1, 'desk', 1);
  INSERT INTO people."Member" (id, name, value, "teamId", "deskId", "bossId") VALUES
    (1, 'boss', 1, NULL, NULL, NULL), (2, 'loner', 2, NULL, NULL, NULL), (3, 'member', 1, 1, 1, 1);
  INSERT INTO people."Visit" VALUES (1, 'visit', 3);
  INSERT INTO people."Badge" (id, name, value, "memberId") VALUES (1, 'badge', 1, 3);
  INSERT INTO people."Note" ("memberId", number, name, value) VALUES (3, 1, 'note', 1);
  INSERT INTO people."Tag" (id, name, value) VALUES (1, 'tag', 1);
  INSERT INTO people."_MemberToTag" VALUES (3, 1);
  INSERT INTO people._fans VALUES (1, 3), (1, 2);
  INSERT INTO people."Mascot" (id, name, value, "teamId") VALUES (1, 'mascot', 1, 1);
  INSERT INTO people."Word" (id, name, value, parent) VALUES (1, 'parent', 1, NULL), (2, 'word', 1, 1);`;

/** So that the next rows get the same ids again. */
export const SEQUENCES = ['Team', 'Member', 'Visit', 'Badge', 'Tag', 'Mascot', 'Word']
  .map((model) => `people."${model}_id_seq"`)
  .concat('depot."office furniture_desk_id_seq"')
  .map((name) => `SELECT setval('${name}', 100);`)
  .join('\n');

/** The rows that another key's holder may have written: its token is later, and its value is 50. */
export const TARGETS: ReadonlyArray<readonly [Fenced, number]> = [
  ['Member', 1],
  ['Member', 2],
  ['Member', 3],
  ['Badge', 1],
  ['Desk', 1],
  ['Note', 3],
  ['Tag', 1],
  ['Mascot', 1],
  ['Word', 2],
];

export function raise(model: Fenced, id: number, fence = FRESHER): string {
  const table = TABLES[model];
  return `UPDATE ${table.name} SET ${table.fence} = ${fence}, ${table.value} = 50 WHERE ${table.id} = ${id};`;
}

/** As an administrator, whom no guard refuses. */
export function beginAgain(fresher: ReadonlyArray<readonly [Fenced, number]>): string {
  const raised = fresher.map(([model, id]) => raise(model, id)).join('\n');
  return `BEGIN; SELECT fenced_lock.override('test'); ${ROWS} ${SEQUENCES} ${raised} COMMIT`;
}

export type Row = Readonly<Record<string, unknown>>;
export interface Found {
  readonly model: string;
  readonly key: string;
  readonly row: Row;
}

/** All rows of all tables. */
export const SNAPSHOT = Object.entries({
  ...Object.fromEntries(Object.entries(TABLES).map(([model, { name, id }]) => [model, [name, id] as const])),
  Note: [TABLES.Note.name, `"memberId" || ':' || number`] as const,
  Team: ['people."Team"', 'id'] as const,
  Visit: ['people."Visit"', 'id'] as const,
  tags: ['people."_MemberToTag"', `"A" || ':' || "B"`] as const,
  fans: ['people._fans', `"A" || ':' || "B"`] as const,
})
  .map(([model, [name, id]]) => `SELECT '${model}' AS model, (${id})::text AS key, to_jsonb(t) AS row FROM ${name} t`)
  .join(' UNION ALL ')
  .concat(' ORDER BY 1, 2');
