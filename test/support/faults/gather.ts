import { checkChains, type Violation } from './check.js';
import type { Entry, EventCounts, History, KeyEnd, Operation, Trouble } from './history.js';
import { type Note, readJournals } from './journal.js';
import type { Product } from './messages.js';
import type { Stage } from './servers-and-workers.js';

type Known = Pick<History, 'from' | 'to' | 'strikes' | 'calms' | 'left'> & { readonly products: readonly Product[] };

/** The history of a round, from the database, the journals, and what the round itself has seen. */
export async function assemble(stage: Stage, journals: string, { products, ...known }: Known): Promise<History> {
  const notes = readJournals(journals);
  return {
    ...known,
    ...(await readLedger(stage, products)),
    ...readNotes(notes),
    troubles: [...stage.troubles.filter(({ at }) => at >= known.from), ...troublesOf(notes)],
    killed: stage.actors.flatMap(({ killed }) => killed),
  };
}

/** What is wrong with the chains right now, with everybody at work. */
export async function checkLedger(stage: Stage, products: readonly Product[]): Promise<Violation[]> {
  // Of whose handle an entry is, nobody is asked meanwhile: not for ways that have any.
  return checkChains({ ...(await readLedger(stage, products)), operations: [] });
}

/** Rows and ledger of one snapshot. */
async function readLedger({ database }: Stage, products: readonly Product[]) {
  const keys = products.map(({ key }) => key);
  const { rows } = await database.query<{ ends: Array<{ key: string; last: number }>; entries: string[][] }>(
    `SELECT
      (SELECT json_agg(json_build_object('key', s.product, 'last', s.quantity))
         FROM "Stock" AS s WHERE s.product = ANY ($1)) AS ends,
      (SELECT coalesce(json_agg(json_build_array(l.once, l.key, l.token::text, l.before::text, l.after::text)), '[]')
         FROM "Ledger" AS l WHERE l.key = ANY ($1)) AS entries`,
    [keys],
  );
  const ends: KeyEnd[] = (rows[0]?.ends ?? []).map((end) => ({ ...end, first: 0 }));
  const entries = (rows[0]?.entries ?? []).map(
    ([once = '', key = '', token = '', before, after]): Entry => ({
      operation: once.split('/')[0] ?? '',
      key,
      token: BigInt(token),
      before: Number(before),
      after: Number(after),
    }),
  );
  return { keys: ends, entries };
}

function readNotes(notes: ReadonlyMap<string, readonly Note[]>) {
  const operations = new Map<string, Operation>();
  const events: Record<string, number> = {};
  for (const [worker, ofWorker] of notes) {
    for (const { at, ...note } of ofWorker) {
      if (note.note === 'asked') {
        const { id, caller, keys, way, handle } = note;
        operations.set(id, { id, worker, caller, keys, way, askedAt: at, ...(handle && { handle }) });
      } else if (note.note === 'told') {
        const { id, outcome, code } = note;
        const operation = operations.get(id);
        if (operation) operations.set(id, { ...operation, told: { at, outcome, ...(code !== undefined && { code }) } });
      } else if (note.note === 'event') {
        events[note.type] = (events[note.type] ?? 0) + 1;
      }
    }
  }
  return { operations: [...operations.values()], events: events satisfies EventCounts };
}

function troublesOf(notes: ReadonlyMap<string, readonly Note[]>): Trouble[] {
  return [...notes].flatMap(([worker, ofWorker]) =>
    ofWorker.flatMap((note) => (note.note === 'trouble' ? [{ worker, at: note.at, what: note.what }] : [])),
  );
}
