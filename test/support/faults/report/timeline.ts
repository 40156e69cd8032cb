import type { History, Operation } from '../history.js';

/** One holder's time with a key: short names, because there are many thousands of them. */
interface Bar {
  /** From and to, in milliseconds from the beginning of the round. */
  readonly f: number;
  readonly t: number;
  /** Token, process, and what became of it. */
  readonly n: string;
  readonly w: string;
  readonly o: string;
  /** Whether it has left an entry. */
  readonly c: boolean;
}

/** A round as the report draws it. */
export interface Timeline {
  readonly name: string;
  readonly length: number;
  readonly keys: ReadonlyArray<{ readonly key: string; readonly bars: readonly Bar[] }>;
  readonly faults: ReadonlyArray<{
    readonly f: number;
    readonly t: number;
    readonly name: string;
    readonly at: string;
  }>;
  /** Times without faults, in which everybody had to get on. */
  readonly calms: readonly number[];
}

export function timelineOf(name: string, history: History): Timeline {
  const { from, to, keys, turns, operations, entries, strikes, calms } = history;
  const since = (at: number) => Math.round((at - from) * 10) / 10;
  const byId = new Map(operations.map((operation) => [operation.id, operation]));
  const present = new Set(entries.map(({ operation }) => operation));
  return {
    name,
    length: since(to),
    keys: keys.map(({ key }) => ({
      key,
      bars: turns
        .filter((turn) => turn.keys.includes(key))
        .map(({ operation, token, at }) => {
          const asked = byId.get(operation);
          return {
            f: since(at),
            t: since(asked?.told?.at ?? at),
            n: token,
            w: asked?.worker ?? '',
            o: outcomeOf(asked),
            c: present.has(operation),
          };
        }),
    })),
    faults: strikes
      .filter(({ missed }) => !missed)
      .map(({ fault, target, from: begin, to: end }) => ({ f: since(begin), t: since(end), name: fault, at: target })),
    calms: calms.map((calm) => since(calm.from)),
  };
}

function outcomeOf(operation: Operation | undefined): string {
  if (operation?.told === undefined) return 'cut off with its process';
  return operation.told.code ?? operation.told.outcome;
}
