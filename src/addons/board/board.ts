import { randomBytes } from 'node:crypto';
import { checkKey } from '../../options/arguments.js';
import { ASSETS } from './assets.generated.js';
import { forceRelease, hostOf } from './force-release.js';
import { refuse, respond, respondFailed, respondJson } from './headers.js';
import type { ResolvedBoardOptions } from './options.js';
import type { BoardSource } from './source.js';
import { MOST_VIEWERS, Viewers } from './viewers.js';

/** The handler of the board's requests. Other paths get 404. */
export interface Board {
  (request: Request): Promise<Response>;
  /** Ends the events of all open pages. Call it before the server closes; a page connects again if the server goes on. */
  close(): void;
}

interface Route {
  readonly method: 'GET' | 'POST';
  /** Whether any page may ask for it. Another one could not read the answer, but would have the board ask the servers. */
  readonly isOpen?: boolean;
  answer(request: Request): Response | Promise<Response>;
}

const FULL = `${MOST_VIEWERS} pages have this board open, which is the limit. Close one and load this again.`;

/** Opens no connection. The first request for events opens them. */
export function boardOf(source: BoardSource, options: ResolvedBoardOptions): Board {
  // Random for each process. Pages of other origins cannot read it.
  const token = randomBytes(32).toString('base64url');
  const { allowForceRelease, title, refreshInterval, basePath, hosts } = options;
  const viewers = new Viewers(source, { interval: refreshInterval, token: allowForceRelease ? token : undefined });

  // Without this header nginx buffers the events.
  const unbuffered = { 'x-accel-buffering': 'no' };
  const events = (request: Request) => {
    // HEAD is no viewer.
    const stream = request.method === 'HEAD' ? null : viewers.open(request);
    return respond(stream, 'text/event-stream; charset=utf-8', 200, unbuffered);
  };
  const page = (prefix: string): Route => ({
    method: 'GET',
    isOpen: true,
    answer: () => (viewers.isFull ? refuse(503, FULL) : respond(html(title, prefix), 'text/html; charset=utf-8')),
  });
  const routes = new Map<string, Route>([
    ['', page(`${basePath.slice(basePath.lastIndexOf('/') + 1)}/`)],
    ['/', page('')],
    ['/events', { method: 'GET', answer: (request) => (viewers.isFull ? refuse(503, FULL) : events(request)) }],
    ['/history', { method: 'GET', answer: (request) => history(request, source) }],
    ['/force-release', { method: 'POST', answer: (request) => forceRelease(request, source, options, token) }],
    ...Object.entries(ASSETS).map(([file, asset]): [string, Route] => [
      `/${file}`,
      { method: 'GET', isOpen: true, answer: () => respond(asset?.text ?? '', asset?.type ?? '') },
    ]),
  ]);
  // It is a template.
  routes.delete('/board.html');

  const handle = async (request: Request): Promise<Response> => {
    if (hosts !== undefined && !hosts.includes(nameIn(hostOf(request)))) {
      return refuse(421, 'This board is not served under this name.');
    }
    const { pathname } = new URL(request.url);
    const route = pathname.startsWith(basePath) ? routes.get(pathname.slice(basePath.length)) : undefined;
    if (route === undefined) return refuse(404, 'Not found.');
    const { method, isOpen = false } = route;
    const isHead = request.method === 'HEAD' && method === 'GET';
    if (request.method !== method && !isHead) {
      return refuse(405, `Only ${method}.`, { allow: method === 'GET' ? 'GET, HEAD' : method });
    }
    if (!isOpen && isOfForeignPage(request)) return refuse(403, 'Only for the page of this board.');
    const answer = await route.answer(request);
    if (!isOpen) viewers.restIfNobodyLooks();
    return isHead ? new Response(null, answer) : answer;
  };
  return Object.assign(handle, { close: () => viewers.close() });
}

/** The last turns of the key in the query. */
async function history(request: Request, source: BoardSource): Promise<Response> {
  const given = new URL(request.url).searchParams.get('key') ?? '';
  try {
    return respondJson({ turns: await source.history(checkKey(given)) });
  } catch (error) {
    return respondFailed(error);
  }
}

/** `none`: a user typed the address. */
function isOfForeignPage(request: Request): boolean {
  const site = request.headers.get('sec-fetch-site');
  return site !== null && site !== 'same-origin' && site !== 'none';
}

/**
 * The links are relative to the page, because a proxy may have removed the front of the path. If the page's own path has no
 * slash at its end, they begin with the last part of that path.
 */
function html(title: string, prefix: string): string {
  const texts: Readonly<Record<string, string>> = { title: escaped(title), prefix };
  return (ASSETS['board.html']?.text ?? '').replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => texts[name] ?? '');
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The host name of `host:port`; an IPv6 address is in brackets. */
function nameIn(host: string): string {
  return host.replace(/:\d+$/, '');
}
