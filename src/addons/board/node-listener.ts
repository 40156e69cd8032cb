import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeStream } from 'node:stream/web';

/** What Express and its kind add to a request. */
type MountedRequest = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown };

/**
 * Serves a handler of web requests with `node:http`, and with what is built on it: `createServer(toNodeListener(board))`,
 * `app.use('/admin/locks', toNodeListener(board))`.
 */
export function toNodeListener(
  handler: (request: Request) => Promise<Response>,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, outgoing) => {
    answer(handler, incoming, outgoing).catch(() => {
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500, { 'content-type': 'text/plain' }).end('The board failed.\n');
    });
  };
}

async function answer(
  handler: (request: Request) => Promise<Response>,
  incoming: MountedRequest,
  outgoing: ServerResponse,
): Promise<void> {
  const request = requestOf(incoming);
  if (request === undefined) {
    outgoing.writeHead(400, { 'content-type': 'text/plain' }).end('Not a request for the board.\n');
    return;
  }
  const response = await handler(request);
  if (outgoing.destroyed) {
    // The client left before the answer. Nobody would end the stream.
    await response.body?.cancel();
    return;
  }
  const headers = Object.fromEntries(response.headers);
  // A page whose stream has ended asks again, on the same connection if it may: a server that is closed would never end.
  const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
  outgoing.writeHead(
    response.status,
    isStream && incoming.httpVersionMajor === 1 ? { ...headers, connection: 'close' } : headers,
  );
  if (response.body === null) {
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  // Where the client leaves, the stream of the handler is cancelled, which removes the viewer.
  await pipeline(Readable.fromWeb(response.body as NodeStream<Uint8Array>), outgoing);
}

/** `undefined` if the method, host or path is invalid. */
function requestOf(incoming: MountedRequest): Request | undefined {
  const { method = 'GET', headers } = incoming;
  // A router that is mounted at a path removes that path from `url`. The URL is joined as text, because
  // `new URL('//other/x', base)` would have another host. HTTP/2 has `:authority` in place of `Host`.
  const url = `http://${headers.host ?? headers[':authority'] ?? 'localhost'}${incoming.originalUrl ?? incoming.url ?? '/'}`;
  const sent = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !name.startsWith(':')) sent.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  try {
    const hasBody = method !== 'GET' && method !== 'HEAD';
    const body = hasBody ? { body: bodyOf(incoming), duplex: 'half' } : {};
    return new Request(url, { method, headers: sent, ...body } as RequestInit);
  } catch {
    return undefined;
  }
}

/** A body parser may have consumed the stream already. */
function bodyOf(incoming: MountedRequest): string | Uint8Array | ReadableStream {
  const { body } = incoming;
  if (body === undefined) return Readable.toWeb(incoming) as ReadableStream;
  return typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
}
