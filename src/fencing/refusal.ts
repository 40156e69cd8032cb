import { StaleTokenError } from '../base/errors.js';
import type { Database } from '../database/database.js';
import type { Fencing } from './fencing.js';

const STALE = 'FL001';
const WITHOUT_TOKEN = 'FL002';

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
  by: { readonly key: string; readonly token: bigint; readonly fencing: Fencing },
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
