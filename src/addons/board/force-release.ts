import { timingSafeEqual } from 'node:crypto';
import { InvalidOptionError } from '../../base/errors.js';
import { checkKey } from '../../options/validate-call.js';
import { respondJson } from './headers.js';
import { brief } from './health.js';
import type { ResolvedBoardOptions } from './options.js';
import type { BoardSource } from './source.js';

/** The header that the page sends its token in. A page of another origin can neither read the token nor send the header. */
const TOKEN_HEADER = 'x-fenced-lock-board';
/** A key has 512 bytes at most, as JSON up to six times as many. */
const LARGEST = 8_192;

const HELD_BY_ANOTHER = 'The key is held by another now, and was not taken. Look again.';

/** Takes a key from its holder, if the request comes from the board's own page and the holder is the one it showed. */
export async function forceRelease(
  request: Request,
  source: BoardSource,
  options: ResolvedBoardOptions,
  token: string,
): Promise<Response> {
  const refusal = refusalOf(request, options, token);
  if (refusal !== undefined) return respondJson({ error: refusal }, 403);
  const asked = await bodyOf(request);
  if (typeof asked === 'string') return respondJson({ error: asked }, 400);
  try {
    // The user has confirmed it for the holder that the page showed. A later holder is not released.
    if (await source.forceRelease(asked.key, asked.holder)) return respondJson({ released: true });
    const holder = await source.holderOf(asked.key);
    if (holder !== null && holder !== asked.holder) return respondJson({ error: HELD_BY_ANOTHER }, 409);
    return respondJson({ released: false });
  } catch (error) {
    return respondJson({ error: `${brief(error)}.` }, 502);
  }
}

/** Why the request is refused; `undefined` if it comes from the page. */
function refusalOf(request: Request, { allowForceRelease, origin }: ResolvedBoardOptions, token: string) {
  if (!allowForceRelease) return 'This board only shows. allowForceRelease lets it take keys.';
  const { headers } = request;
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin') return 'The request comes from another site.';
  if (!isSameOrigin(headers.get('origin'), origin, hostOf(request))) {
    return 'The request comes from another origin. Behind a proxy that changes the Host header, set the option `origin`.';
  }
  if (!/^application\/json\b/.test(headers.get('content-type') ?? '')) return 'The request must have JSON.';
  if (!isEqual(headers.get(TOKEN_HEADER) ?? '', token)) {
    return 'The token of this page is not that of this process, which may have started anew. Load the page again.';
  }
  return undefined;
}

/** The host by the header: frameworks may put another one into the URL. */
export function hostOf(request: Request): string {
  return (request.headers.get('host') ?? new URL(request.url).host).toLowerCase();
}

/** Browsers send `Origin` with every POST, so a request without it is not from the page. */
function isSameOrigin(sent: string | null, expected: string | undefined, host: string): boolean {
  if (sent === null) return false;
  if (expected !== undefined) return sent === expected;
  return URL.canParse(sent) && new URL(sent).host === hostWithoutDefaultPort(host, sent);
}

function hostWithoutDefaultPort(host: string, origin: string): string {
  const url = `${new URL(origin).protocol}//${host}`;
  return URL.canParse(url) ? new URL(url).host : host;
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** The parsed body, or a sentence that says what is wrong with it. */
async function bodyOf(request: Request): Promise<{ readonly key: string; readonly holder: string | null } | string> {
  const text = await textOf(request);
  if (text === undefined) return 'The request is too large.';
  let body: { readonly key?: unknown; readonly holder?: unknown } | null;
  try {
    body = JSON.parse(text);
  } catch {
    return 'The request is no JSON. A body parser before the board may have taken it.';
  }
  if (typeof body?.key !== 'string') return 'The request names no key.';
  if (body.holder !== null && typeof body.holder !== 'string') return 'The request names no holder.';
  try {
    return { key: checkKey(body.key), holder: body.holder };
  } catch (error) {
    if (error instanceof InvalidOptionError) return error.message;
    throw error;
  }
}

async function textOf(request: Request): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = '';
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength;
    if (size > LARGEST) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
