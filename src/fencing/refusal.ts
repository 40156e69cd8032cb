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
    // The admission has set the token, so a missing token means that the key's row has a newer one.
    reason: state === STALE ? 'other-key' : 'superseded',
    fence: fence ? BigInt(fence) : undefined,
    where: key ? by.fencing.toFields(model, key) : undefined,
    ofHandle: by.ofHandle,
    cause: error,
  });
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

function parse(detail: string | undefined): Detail {
  try {
    return JSON.parse(detail ?? '{}') as Detail;
  } catch {
    return {};
  }
}
