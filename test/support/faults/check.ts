import type { Calm, Entry, HandlePart, History, KeyEnd, Operation } from './history.js';

type ViolationKind =
  | 'lost-update'
  | 'token-order'
  | 'handle-token'
  | 'ok-missing'
  | 'ok-twice'
  | 'error-present'
  | 'unknown-twice'
  | 'half-present'
  | 'nobodys-entry'
  | 'never-told'
  | 'no-progress'
  | 'idle-in-transaction'
  | 'lease-left'
  | 'trouble';

export interface Violation {
  readonly kind: ViolationKind;
  readonly what: string;
}

/**
 * How long a caller may take to get something done once the faults have stopped; milliseconds. One that has just been
 * hurt may have to find an outcome first (15 s at most), and then to wait (3 s) and to work (1.5 s).
 */
export const PROGRESS_WITHIN = 20_000;

/** Everything in a history that the promises forbid. */
export function check(history: History): Violation[] {
  return [...checkChains(history), ...checkReports(history), ...checkProgress(history), ...checkLeft(history)];
}

/** Per key the entries are one chain: each read what the one before had written, and under a higher token. */
export function checkChains({
  keys,
  entries,
  operations,
}: Pick<History, 'keys' | 'entries' | 'operations'>): Violation[] {
  const handles = new Map(operations.map(({ id, handle }) => [id, handle]));
  return keys.flatMap((end) =>
    checkChain(
      end,
      // Every turn adds, so that the values themselves say in which order they were written.
      entries.filter(({ key }) => key === end.key).toSorted((a, b) => a.before - b.before || a.after - b.after),
      (entry) => handles.get(entry.operation),
    ),
  );
}

function checkChain(
  { key, first, last }: KeyEnd,
  chain: readonly Entry[],
  handleOf: (entry: Entry) => HandlePart | undefined,
): Violation[] {
  const tokens = new Map<string, bigint>();
  const violations: Violation[] = [];
  let value = first;
  let previous: Entry | undefined;
  for (const entry of chain) {
    const by = `${entry.operation} (token ${entry.token})`;
    const after = previous === undefined ? 'the beginning' : `${previous.operation} (token ${previous.token})`;
    if (entry.before !== value)
      violations.push({
        kind: 'lost-update',
        what: `${key}: ${by} read ${entry.before}, after ${after} it is ${value}`,
      });
    const handle = handleOf(entry);
    if (previous !== undefined && !mayFollow(entry, handle, previous, handleOf(previous)))
      violations.push({ kind: 'token-order', what: `${key}: ${by} comes after ${after}` });
    if (handle !== undefined) {
      const token = tokens.get(handle.id) ?? entry.token;
      tokens.set(handle.id, token);
      if (token !== entry.token)
        violations.push({ kind: 'handle-token', what: `${key}: ${by} is of a handle that had the token ${token}` });
    }
    value = entry.after;
    previous = entry;
  }
  if (value !== last)
    violations.push({ kind: 'lost-update', what: `${key}: the row has ${last}, its chain ends at ${value}` });
  return violations;
}

/**
 * Tokens rise. Only the transactions of one handle have the same one, and follow each other without anybody in between;
 * where it was resumed elsewhere the process that had it before writes no more.
 */
function mayFollow(
  { token }: Entry,
  handle: HandlePart | undefined,
  previous: Entry,
  before: HandlePart | undefined,
): boolean {
  if (token !== previous.token) return token > previous.token;
  return handle !== undefined && handle.id === before?.id && handle.resumed >= before.resumed;
}

/** What callers were told is what has happened. */
function checkReports({ operations, entries, killed }: History): Violation[] {
  const entriesOf = new Map<string, Entry[]>();
  for (const entry of entries) entriesOf.set(entry.operation, [...(entriesOf.get(entry.operation) ?? []), entry]);
  const asked = new Set(operations.map(({ id }) => id));
  const nobodys = entries.filter(({ operation }) => !asked.has(operation));
  return [
    ...nobodys.map(({ operation }): Violation => ({ kind: 'nobodys-entry', what: `${operation} was never asked for` })),
    ...operations.flatMap((operation) => checkReport(operation, entriesOf.get(operation.id) ?? [], killed)),
  ];
}

function checkReport(operation: Operation, entries: readonly Entry[], killed: readonly string[]): Violation[] {
  const { id, told, keys, worker } = operation;
  const counts = keys.map((key) => entries.filter((entry) => entry.key === key).length);
  const least = Math.min(...counts);
  const most = Math.max(...counts);
  const violations: Violation[] = [];
  const found = (kind: ViolationKind, what: string) => violations.push({ kind, what: `${id}: ${what}` });
  if (least !== most) found('half-present', `it is there for some of its keys: ${keys.join(', ')}`);
  switch (told?.outcome) {
    case 'ok':
      if (least < 1) found('ok-missing', 'it was reported as done and is not there');
      if (most > 1) found('ok-twice', `it was reported as done and is there ${most} times`);
      break;
    case 'error':
      if (most > 0) found('error-present', `it was reported as failed (${told.code}) and is there`);
      break;
    default:
      if (most > 1) found('unknown-twice', `nobody knew of it, and it is there ${most} times`);
  }
  if (told === undefined && !killed.includes(worker)) found('never-told', 'its call has never settled');
  return violations;
}

/** Milliseconds until each caller of a calm was told of something done; infinite if never. */
export function progressTimes({ from, callers }: Calm, operations: readonly Operation[]): number[] {
  return callers.map((caller) => {
    const done = operations
      .filter((each) => each.caller === caller && each.told?.outcome === 'ok')
      .map(({ told }) => (told?.at ?? Number.POSITIVE_INFINITY) - from)
      .filter((after) => after >= 0);
    return Math.min(Number.POSITIVE_INFINITY, ...done);
  });
}

function checkProgress({ calms, operations }: History): Violation[] {
  return calms.flatMap((calm) =>
    progressTimes(calm, operations).flatMap((time, index): Violation[] => {
      const caller = `${calm.callers[index]}`;
      if (time <= PROGRESS_WITHIN) return [];
      const what = `${caller} got nothing done within ${PROGRESS_WITHIN} ms of calm. Told instead: ${toldInCalm(caller, calm, operations)}`;
      return [{ kind: 'no-progress', what }];
    }),
  );
}

/** So that the report of a run that cannot be repeated says why. Times are milliseconds of the calm. */
function toldInCalm(caller: string, { from }: Calm, operations: readonly Operation[]): string {
  const told = operations.flatMap(({ caller: by, way, keys, askedAt, told: answer }) => {
    if (by !== caller || answer === undefined || answer.at < from) return [];
    const outcome = answer.code ?? answer.outcome;
    return [
      `${outcome} at ${Math.round(answer.at - from)} (${way} of ${keys.join(', ')}, asked at ${Math.round(askedAt - from)})`,
    ];
  });
  return told.length > 0 ? told.join('; ') : 'nothing';
}

function checkLeft({ left, troubles }: History): Violation[] {
  return [
    ...left.idleInTransaction.map((what): Violation => ({ kind: 'idle-in-transaction', what })),
    ...left.leases.map((what): Violation => ({ kind: 'lease-left', what })),
    ...troubles.map(({ worker, what }): Violation => ({ kind: 'trouble', what: `${worker}: ${what}` })),
  ];
}
