import { InvalidOptionError } from '../../base/errors.js';
import { brief } from './health.js';

/**
 * The page may load, run and ask only what this handler serves, and no page may frame it. With Trusted Types no text, such as
 * a key, can become a script, even if the page's own script made a mistake.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const ALWAYS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // no-transform: a proxy that compresses would hold events back until it has enough of them.
  'cache-control': 'no-store, no-transform',
};

export function respond(
  body: string | ReadableStream<Uint8Array> | null,
  type: string,
  status = 200,
  more: Readonly<Record<string, string>> = {},
): Response {
  return new Response(body, { status, headers: { ...ALWAYS, 'content-type': type, ...more } });
}

export function respondJson(value: object, status = 200): Response {
  return respond(toJson(value), 'application/json; charset=utf-8', status);
}

/** 400: the request was wrong; 502: a server gave no answer. */
export function respondFailed(error: unknown): Response {
  return respondJson({ error: `${brief(error)}.` }, error instanceof InvalidOptionError ? 400 : 502);
}

/** Tokens and turns are sent as text: they may be higher than the numbers of JavaScript. */
export function toJson(value: object): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part));
}

export function refuse(status: number, message: string, more: Readonly<Record<string, string>> = {}): Response {
  return respond(`${message}\n`, 'text/plain; charset=utf-8', status, more);
}
