import type { EventEmitter } from 'node:events';
import { STATUS_CODES } from 'node:http';
import { type ArgumentsHost, Catch, HttpException, Inject, Logger } from '@nestjs/common';
import { BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { FencedLockError, type FencedLockErrorCode } from '../../base/errors.js';

/** What the client of the server is told of an error: nothing of its text, which names keys. */
interface Answer {
  readonly status: number;
  readonly message: string;
  /** Seconds after which to come again, where nobody knows better. */
  readonly retryAfter?: number;
}

const INTERNAL: Answer = { status: 500, message: 'Internal server error' };
const UNAVAILABLE: Answer = { status: 503, message: 'This step was not done. Try again later.', retryAfter: 1 };

/**
 * All that is not here is a mistake of the application or of its setup: 500. An error tells of its own call alone: what the
 * same request has committed before, in another call or in another transaction of a handle, stays.
 */
const ANSWERS: Partial<Record<FencedLockErrorCode, Answer>> = {
  LOCK_TIMEOUT: { status: 409, message: 'Somebody else is at work on this. Try again later.', retryAfter: 1 },
  STALE_TOKEN: { status: 409, message: 'Somebody else has changed this meanwhile. This step was not done.' },
  LOCK_LOST: { status: 503, message: 'The work was interrupted, and the step that was under way was undone.' },
  LOCK_UNAVAILABLE: UNAVAILABLE,
  CLOSED: UNAVAILABLE,
  HOOK_FAILED: { status: 500, message: 'This was done, but a step after it failed. Do not repeat it.' },
  COMMIT_UNKNOWN: { status: 500, message: 'Nobody can say whether this was done. Look before you try again.' },
};

/**
 * Answers HTTP requests that end with an error of this package: 409 where somebody else was first, 503 where it may work
 * again soon, and 500 for the rest, `COMMIT_UNKNOWN` among it. The body has the error's `code`. `Retry-After` says when the
 * holder's lease ends, where that is known.
 *
 * Register it with `{ provide: APP_FILTER, useClass: FencedLockExceptionFilter }` or `@UseFilters(FencedLockExceptionFilter)`; by
 * hand it needs `new FencedLockExceptionFilter(app.get(HttpAdapterHost))`. A message of a microservice or of a WebSocket is
 * answered by `{ status: 'error', code, message }`; the WebSocket gets it as the event `exception`. GraphQL gets the error itself.
 */
export class FencedLockExceptionFilter extends BaseExceptionFilter<FencedLockError> {
  readonly #log = new Logger('FencedLockExceptionFilter');
  readonly #host: HttpAdapterHost;

  constructor(host: HttpAdapterHost) {
    super(host?.httpAdapter);
    this.#host = host;
  }

  override catch(error: FencedLockError, host: ArgumentsHost): unknown {
    const type: string = host.getType();
    if (!['http', 'rpc', 'ws'].includes(type)) throw error;
    const { status, message, retryAfter } = answerTo(error);
    // Each rollout turns calls away.
    if (error.code === 'CLOSED') this.#log.debug(error.message);
    // All of an error, except the result of a function whose hook has failed: that may have secrets.
    else if (status >= 500 || error.code === 'STALE_TOKEN')
      this.#log.error(error.code === 'HOOK_FAILED' ? error.stack : error);
    // Nest awaits nothing here: what is thrown would end as an unhandled rejection, and the sender would get no answer.
    const answer = { status: 'error', code: error.code, message };
    if (type === 'rpc') return throwError(() => answer);
    if (type === 'ws') return void host.switchToWs().getClient<EventEmitter>().emit('exception', answer);
    const seconds = secondsOf(error) ?? retryAfter;
    const response: unknown = host.getArgByIndex(1);
    const adapter = this.#host.httpAdapter;
    if (seconds !== undefined && !adapter.isHeadersSent(response)) {
      adapter.setHeader(response, 'Retry-After', String(seconds));
    }
    const body = { statusCode: status, error: STATUS_CODES[status], code: error.code, message };
    return super.catch(new HttpException(body, status, { cause: error }) as unknown as FencedLockError, host);
  }
}

function answerTo(error: FencedLockError): Answer {
  // Postgres may end the transaction of a process that stood still before that finds its lease lost.
  const { reason } = error as { readonly reason?: unknown };
  if (error.code === 'TRANSACTION_ABORTED' && reason === 'connection') return UNAVAILABLE;
  return ANSWERS[error.code] ?? INTERNAL;
}

/** When the lease of who has the key ends, unless it is renewed. */
function secondsOf(error: FencedLockError): number | undefined {
  const { expiresIn } = error as { readonly expiresIn?: unknown };
  if (error.code !== 'LOCK_TIMEOUT' || typeof expiresIn !== 'number' || !(expiresIn >= 0)) return undefined;
  return Math.max(1, Math.ceil(expiresIn / 1_000));
}

Catch(FencedLockError)(FencedLockExceptionFilter);
Inject(HttpAdapterHost)(FencedLockExceptionFilter, undefined, 0);
