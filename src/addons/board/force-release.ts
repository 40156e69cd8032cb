import { timingSafeEqual } from 'node:crypto';
import { checkKey } from '../../options/arguments.js';
import { respondFailed, respondJson } from './headers.js';
import type { ResolvedBoardOptions } from './options.js';
import type { BoardSource } from './source.js';

/** The header that the page sends its token in. A page of another origin can neither read the token nor send the header. */
const TOKEN_HEADER = 'x-fenced-lock-board';
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
  // Nothing is read of a request that the page has not sent.
  const sent: unknown = await request.json().catch(() => undefined);
  if (sent === undefined) {
    return respondJson({ error: 'The request is no JSON. A body parser before the board may have taken it.' }, 400);
  }
  const { key, holder } = (sent ?? {}) as { readonly key?: unknown; readonly holder?: unknown };
  if (holder !== null && typeof holder !== 'string') return respondJson({ error: 'The request names no holder.' }, 400);
  try {
    // The user has confirmed it for the holder that the page showed. A later holder is not released.
    const result = await source.forceRelease(checkKey(key), holder);
    if (result === 'held by another') return respondJson({ error: HELD_BY_ANOTHER }, 409);
    return respondJson({ released: result === 'taken' });
  } catch (error) {
    return respondFailed(error);
  }
}

/** Why the request is refused; `undefined` if it comes from the page. */
function refusalOf({ headers, url }: Request, options: ResolvedBoardOptions, token: string): string | undefined {
  if (!options.allowForceRelease) return 'This board only shows. allowForceRelease lets it take keys.';
  // Browsers send `Origin` with every POST, so a request without it is not from the page.
  const origin = headers.get('origin') ?? 'null';
  const own = options.origin ?? originAt(hostOf({ headers, url }), origin);
  if (origin !== own) {
    return 'The request comes from another origin. Behind a proxy that changes the Host header, set the option `origin`.';
  }
  if (!/^application\/json\b/.test(headers.get('content-type') ?? '')) return 'The request must have JSON.';
  if (!isEqual(headers.get(TOKEN_HEADER) ?? '', token)) {
    return 'The token of this page is not that of this process, which may have started anew. Load the page again.';
  }
  return undefined;
}

/** The host by the header: frameworks may put another one into the URL. */
export function hostOf({ headers, url }: Pick<Request, 'headers' | 'url'>): string {
  return (headers.get('host') ?? new URL(url).host).toLowerCase();
}

/** The origin at the host, with the scheme of `origin`. `Host` may name the default port, which an origin leaves out. */
function originAt(host: string, origin: string): string | undefined {
  const [scheme] = origin.split('//', 1);
  const url = `${scheme}//${host}`;
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
