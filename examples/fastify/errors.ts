import type { FastifyReply, FastifyRequest } from 'fastify';
// In your project: 'prisma-extension-fenced-lock'.
import { type FencedLockErrorCode, toFencedLockError } from '../../src/index.js';

/** Thrown inside a lock it rolls the whole transaction back, and reaches the caller as it is. */
export class OutOfStockError extends Error {
  override readonly name = 'OutOfStockError';
  readonly statusCode = 409;

  constructor() {
    super('There is not enough left.');
  }
}

export class NotFoundError extends Error {
  override readonly name = 'NotFoundError';
  readonly statusCode = 404;
}

/**
 * Nothing was done, or all was undone: the same request may be sent again. 409 where another request was first: by 503,
 * balancers and meshes would take a busy key for a sick process.
 */
const MAY_BE_SENT_AGAIN: Partial<Record<FencedLockErrorCode, 409 | 503>> = {
  LOCK_TIMEOUT: 409,
  STALE_TOKEN: 409,
  LOCK_UNAVAILABLE: 503,
  LOCK_LOST: 503,
  TRANSACTION_ABORTED: 503,
  CLOSED: 503,
};

/** The one place where errors become answers. */
export function answerError(error: Error & { statusCode?: number }, request: FastifyRequest, reply: FastifyReply) {
  // The client has gone away: there is nobody to answer.
  if (reply.raw.closed) return reply.hijack();
  const code = toFencedLockError(error)?.code;
  const status = code && MAY_BE_SENT_AGAIN[code];
  if (status !== undefined) {
    request.log.warn({ code }, 'nothing was done');
    return reply.code(status).header('retry-after', '1').send({ error: code });
  }
  // The sale may have taken effect: who asks should look before sending it again.
  if (code === 'COMMIT_UNKNOWN') return reply.code(500).send({ error: code, message: 'look at the orders first' });
  if (error.statusCode !== undefined && error.statusCode < 500) {
    return reply.code(error.statusCode).send({ error: error.name, message: error.message });
  }
  request.log.error(error);
  return reply.code(500).send({ error: 'INTERNAL' });
}
