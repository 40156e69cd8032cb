import { once } from 'node:events';
import net from 'node:net';

export interface RewritingProxy extends AsyncDisposable {
  /** The url, with this proxy in the place of the server. */
  readonly url: string;
}

interface Options {
  /** In what the server says: a text, and one of the same length instead of it. */
  readonly rewrite?: readonly [from: string, to: string];
  /** As PgBouncer in statement mode does, BEGIN is answered with an error, and the connection ends. */
  readonly statementMode?: boolean;
}

/** Makes a server look like another one, as far as that cannot be had here. */
export async function rewritingProxy(
  url: string,
  { rewrite, statementMode = false }: Options,
): Promise<RewritingProxy> {
  const target = new URL(url);
  const sockets = new Set<net.Socket>();
  const server = net.createServer((client) => {
    const upstream = net.connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)));
    }
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.end());
    client.on('data', (data) => {
      if (statementMode && data.includes('BEGIN')) client.end(refusal());
      else upstream.write(data);
    });
    upstream.on('data', (data) => client.write(rewrite === undefined ? data : replaced(data, ...rewrite)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxied = new URL(url);
  proxied.host = `127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  return {
    url: proxied.href,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function replaced(data: Buffer, from: string, to: string): Buffer {
  if (from.length !== to.length) throw new Error('the protocol counts bytes: both texts must be equally long');
  return Buffer.from(data.toString('latin1').replaceAll(from, to), 'latin1');
}

function refusal(): Buffer {
  const fields = ['SFATAL', 'C08P01', 'Mtransaction blocks not allowed in statement pooling mode'];
  const body = Buffer.from(`${fields.map((field) => `${field}\0`).join('')}\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
