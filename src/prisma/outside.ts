import { InsideTransactionError } from '../base/errors.js';
import { heldKey } from '../base/held-keys.js';
import { writing } from '../connection/outside.js';
import type { HookParams } from './internals.js';
import { saysThatItWrites } from './raw-writes.js';
import { WRITE_NAMES } from './transactions.js';

/**
 * A query extension for what writes, and for nothing else: passes it on, and has it refused if it stands in a lock's
 * function and does not arrive in its transaction.
 */
export function noticingWrites({ oneSession }: { readonly oneSession: boolean }) {
  // A read waits for the lock's transaction there, which waits for it.
  if (oneSession) return { $allOperations: notice } as unknown as Record<string, never>;
  const models = Object.fromEntries(WRITE_NAMES.map((name) => [name, notice]));
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
  return saysThatItWrites(text) ? notice(params) : params.query(params.args);
}

async function notice({ model, operation, args, query }: HookParams): Promise<unknown> {
  const key = heldKey();
  if (key === undefined) return query(args);
  let refusal: Error | undefined;
  const refuse = () => {
    refusal = new InsideTransactionError(
      `${model === undefined ? operation : `${model}.${operation}`} was called inside the function of a lock, on a client ` +
        'whose operations do not belong to its transaction: a write would stay if it is rolled back, and wait for what it holds. ' +
        'Use the client that the function is given; for what has to stay whatever happens, one without this extension.',
      { key },
    );
    return refusal;
  };
  try {
    return await writing({ refuse }, async () => await query(args));
  } catch (error) {
    // On its way here Prisma makes an error of its own of it.
    throw refusal ?? error;
  }
}
