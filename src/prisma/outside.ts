import { withCaller } from '../base/caller.js';
import { InsideTransactionError } from '../base/errors.js';
import { heldKey } from '../base/held-keys.js';
import { writing } from '../connection/refused-writes.js';
import { WRITE_NAMES } from '../fencing/writes.js';
import type { HookParams } from './internals.js';
import { isRawWrite } from './raw-writes.js';

/**
 * A query extension for writes. It passes them on, but a write inside a lock's function is refused if it does not
 * arrive in the lock's transaction.
 */
export function detectOutsideWrites({ oneSession }: { readonly oneSession: boolean }) {
  // With one session, a read waits for the lock's transaction, which waits for the read.
  if (oneSession) return { $allOperations: notice } as unknown as Record<string, never>;
  const models = Object.fromEntries([...WRITE_NAMES].map((name) => [name, notice]));
  return {
    $allModels: models,
    $executeRaw: notice,
    $executeRawUnsafe: notice,
    $queryRaw: noticeRaw,
    $queryRawUnsafe: noticeRaw,
  } as unknown as Record<string, never>;
}

function noticeRaw(params: HookParams): Promise<unknown> {
  const { strings, sql } = params.args as { strings?: readonly string[]; sql?: string };
  const text = Array.isArray(params.args) ? String(params.args[0]) : (strings?.join('?') ?? sql ?? '');
  return isRawWrite(text) ? notice(params) : params.query(params.args);
}

async function notice({ model, operation, args, query }: HookParams): Promise<unknown> {
  const key = heldKey();
  if (key === undefined) return query(args);
  let refusal: Error | undefined;
  const refuse = () => {
    refusal = new InsideTransactionError(
      `${model === undefined ? operation : `${model}.${operation}`} was called inside the function of a lock, on a client ` +
        "(such as `prisma`) and not on the `tx` of that lock. It does not belong to the lock's transaction: a write would stay if " +
        'that is rolled back, and wait for its row locks. Use the `tx` of the function; for writes that must stay in any case, ' +
        'use a client without this extension.',
      { key },
    );
    return refusal;
  };
  try {
    return await writing({ refuse }, async () => await query(args));
  } catch (error) {
    // Prisma replaces the error on its way here. It was made where the stack does not lead to the write.
    throw refusal === undefined ? error : withCaller(refusal);
  }
}
