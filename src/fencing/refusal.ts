import { type StaleReason, StaleTokenError } from '../base/errors.js';
import type { Database } from '../database/database.js';
import type { Fencing } from './fencing.js';

const STALE = 'FL001';
const WITHOUT_TOKEN = 'FL002';
/** Refusals of a handle's token by the admission. FL003: the key's row has another token. FL005: the key has no row any more. */
const OF_HANDLE: ReadonlyMap<string, StaleReason> = new Map([
  ['FL003', 'superseded'],
  ['FL005', 'forgotten'],
]);

/** The DETAIL of a refusal by the guard. */
interface Detail {
  readonly schema?: string;
  readonly table?: string;
  /** `null`: rows that cannot be seen may be fresher. */
  readonly fence?: string | null;
  /** The columns of the primary key. */
  readonly key?: Readonly<Record<string, unknown>> | null;
}

/** Converts a refusal of the guard to a StaleTokenError. Any other error is returned unchanged. */
export function fromGuard(
  error: unknown,
  database: Pick<Database<unknown>, 'sqlState' | 'sqlDetail'>,
  by: { readonly key: string; readonly token: bigint; readonly ofHandle: boolean; readonly fencing: Fencing },
): unknown {
  const state = database.sqlState(error);
  if (state !== STALE && state !== WITHOUT_TOKEN) return error;
  const { schema, table = '', fence, key } = parse(database.sqlDetail(error));
  const model = by.fencing.modelOf(schema, table);
  return new StaleTokenError(by.key, by.token, model ?? table, {
    reason: reasonOf(state, fence),
    fence: fence ? BigInt(fence) : undefined,
    where: key ? by.fencing.toFields(model, key) : undefined,
    ofHandle: by.ofHandle,
    cause: error,
  });
}

function reasonOf(state: string, fence: Detail['fence']): StaleReason {
  // The admission has set the token, so a missing token means that the key's row has a newer one.
  if (state !== STALE) return 'superseded';
  // Only a refusal of TRUNCATE is about no row.
  return fence === null ? 'hidden-rows' : 'other-key';
}

/** Converts a refusal of a handle's token to a StaleTokenError. Any other error is returned unchanged. */
export function fromAdmission(
  error: unknown,
  database: Pick<Database<unknown>, 'sqlState' | 'sqlDetail'>,
  { keys, key: first }: { readonly keys: readonly string[]; readonly key: string },
  tokens: readonly bigint[] | undefined,
): unknown {
  const reason = OF_HANDLE.get(database.sqlState(error) ?? '');
  if (reason === undefined) return error;
  const key = database.sqlDetail(error) ?? first;
  return new StaleTokenError(key, tokens?.[keys.indexOf(key)] ?? 0n, undefined, {
    reason,
    ofHandle: true,
    cause: error,
  });
}

/** A string of JSON, or a number that `JSON.parse` may round. Digits inside of a string belong to the string. */
const STRING_OR_LONG_NUMBER = /"(?:[^"\\]|\\.)*"|-?[\d.]{16,}/g;

/** Reads a DETAIL. Long numbers stay texts: keys of rows may be integers or fractions that no `number` has exactly. */
function parse(detail: string | undefined): Detail {
  try {
    const exact = (detail ?? '{}').replace(STRING_OR_LONG_NUMBER, (token) =>
      token.startsWith('"') ? token : `"${token}"`,
    );
    return JSON.parse(exact) as Detail;
  } catch {
    return {};
  }
}
