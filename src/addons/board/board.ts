import { randomBytes } from 'node:crypto';
import { InvalidOptionError } from '../../base/errors.js';
import { checkKey } from '../../options/validate-call.js';
import { ASSETS } from './assets.generated.js';
import { forceRelease, hostOf } from './force-release.js';
import { refuse, respond, respondJson } from './headers.js';
import { brief } from './health.js';
import type { ResolvedBoardOptions } from './options.js';
import type { BoardSource } from './source.js';
import { MOST_VIEWERS, Viewers } from './viewers.js';

/** The handler of the board's requests. Other paths get 404. */
export interface Board {
  (request: Request): Promise<Response>;
  /** Ends the events of all open pages. Call it before the server closes; a page connects again if the server goes on. */
  close(): void;
}

/** Opens no connection. The first request for events opens them. */
export function boardOf(source: BoardSource, options: ResolvedBoardOptions): Board {
  // Random for each process. Pages of other origins cannot read it.
  const token = randomBytes(32).toString('base64url');
  const { allowForceRelease, title, refreshInterval, basePath, hosts } = options;
  const viewers = new Viewers(source, refreshInterval, {
    interval: refreshInterval,
    ...(allowForceRelease && { token }),
    process: source.process !== undefined,
  });

  const handle = async (request: Request): Promise<Response> => {
    if (hosts !== undefined && !hosts.includes(nameIn(hostOf(request)))) {
      return refuse(421, 'This board is not served under this name.');
    }
    const path = pathBelow(basePath, new URL(request.url).pathname);
    if (path === undefined) return refuse(404, 'Not found.');
    if (path === '/force-release') {
      if (request.method !== 'POST') return refuse(405, 'Only POST.', { allow: 'POST' });
      const answer = await forceRelease(request, source, options, token);
      if (answer.ok) viewers.hurry();
      viewers.restIfNobodyLooks();
      return answer;
    }
    if (path === '/history') {
      const answer = await history(request, source);
      viewers.restIfNobodyLooks();
      return answer;
    }
    const isPage = path === '' || path === '/';
    // board.html is a template, which is not served as a file.
    const asset = isPage || path === '/board.html' ? undefined : ASSETS[path.slice(1)];
    if (asset === undefined && !isPage && path !== '/events') return refuse(404, 'Not found.');
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuse(405, 'Only GET.', { allow: 'GET, HEAD' });
    if (asset !== undefined) return respond(request.method === 'HEAD' ? null : asset.text, asset.type);
    if (viewers.isFull) {
      return refuse(
        503,
        `${MOST_VIEWERS} pages have this board open, which is the limit. Close one and load this again.`,
      );
    }
    if (path === '/events') return events(request, viewers);
    const html = page(title, path === '' ? `${basePath.slice(basePath.lastIndexOf('/') + 1)}/` : '');
    return respond(request.method === 'HEAD' ? null : html, 'text/html; charset=utf-8');
  };
  return Object.assign(handle, { close: () => viewers.close() });
}

function events(request: Request, viewers: Viewers): Response {
  if (isOfForeignPage(request)) return refuse(403, 'Only for the page of this board.');
  const type = 'text/event-stream; charset=utf-8';
  if (request.method === 'HEAD') return respond(null, type);
  // Without this header nginx buffers the events.
  return respond(viewers.open(request), type, 200, { 'x-accel-buffering': 'no' });
}

/** The last turns of the key in the query. */
async function history(request: Request, source: BoardSource): Promise<Response> {
  if (request.method !== 'GET') return refuse(405, 'Only GET.', { allow: 'GET' });
  if (isOfForeignPage(request)) return refuse(403, 'Only for the page of this board.');
  const given = new URL(request.url).searchParams.get('key') ?? '';
  try {
    const turns = await source.history(checkKey(given));
    return respondJson({ turns });
  } catch (error) {
    return respondJson({ error: `${brief(error)}.` }, error instanceof InvalidOptionError ? 400 : 502);
  }
}

/** A foreign page could not read the answer, but would have the board ask the servers. */
function isOfForeignPage(request: Request): boolean {
  const site = request.headers.get('sec-fetch-site');
  return site !== null && site !== 'same-origin' && site !== 'none';
}

/** `undefined` if the path is not below `basePath`. */
function pathBelow(basePath: string, path: string): string | undefined {
  if (path === basePath) return '';
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : undefined;
}

/**
 * The links are relative to the page, because a proxy may have removed the front of the path. If the page's own path has no
 * slash at its end, they begin with the last part of that path.
 */
function page(title: string, prefix: string): string {
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
