import { createServer, type Server } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { boardOf } from '../../addons/board/board.js';
import { toNodeListener } from '../../addons/board/node-listener.js';
import { resolveBoardOptions } from '../../addons/board/options.js';
import type { Context } from '../context.js';
import { codeOf, Misuse, messageOf, Problem } from '../problem.js';
import { boardSource } from '../servers/board-source.js';
import { findServers } from '../servers/locks.js';
import type { ServerOptions } from '../servers/urls.js';

export interface BoardCommandOptions extends ServerOptions {
  readonly port: number;
  readonly host: string;
  readonly allowForceRelease?: boolean;
  readonly exposeWithoutLogin?: boolean;
}

/** Names that lead to this machine alone. */
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
/** All addresses of this machine: under which names it is reached is not known. */
const ANY = ['0.0.0.0', '::'];

/** Serves the board until it is told to stop. */
export async function board(context: Context, options: BoardCommandOptions, stopped: Promise<unknown>): Promise<void> {
  const { port, host, allowForceRelease = false, exposeWithoutLogin = false } = options;
  const isLocal = isLoopback(host);
  if (!isLocal && !exposeWithoutLogin) {
    throw new Misuse(
      `--host ${host} would show the board, which has no login, to everybody who reaches this machine. ` +
        'Give --expose-without-login too, if that is what you want.',
    );
  }
  // A foreign page may have a name of its own resolve to this machine; it is not answered.
  const isAny = ANY.includes(host);
  if (isAny && allowForceRelease) {
    throw new Misuse(
      '--allow-force-release: a foreign page could have its own name resolve to this server and take keys. Give --host one name ' +
        'or one address.',
    );
  }
  const resolved = resolveBoardOptions({ allowForceRelease, ...(!isAny && { hosts: [...LOOPBACK, bracketed(host)] }) });
  // What is not given is told now, and not to the first who looks.
  const { asked } = await findServers(context, options);
  context.asks(asked);
  const source = boardSource(context, options, asked.postgres.address);
  const handler = boardOf(source, resolved);
  const server = createServer(toNodeListener(handler));
  const url = await listen(server, port, host);
  context.say(`The board is at ${url}`);
  if (!isLocal) {
    const may = allowForceRelease ? 'sees the keys and may take them from their holders' : 'sees the keys';
    context.complain(`fenced-lock: The board has no login: whoever reaches this address ${may}.`);
  }
  if (isAny) {
    context.complain(
      'fenced-lock: It answers under any name, so a foreign web page may reach it too (DNS rebinding). ' +
        'With --host and one name or address it answers under that alone.',
    );
  }
  if (allowForceRelease) context.say('It may take keys from their holders (--allow-force-release).');
  context.say('It connects when somebody looks. Ctrl-C ends it.');
  context.document({ command: 'board', ok: true, url, allowForceRelease });
  await stopped;
  handler.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  // A request without a viewer may have connected, too.
  source.rest?.();
}

/** @throws Problem where the address cannot be had */
async function listen(server: Server, port: number, host: string): Promise<string> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, resolve);
    });
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') throw new Problem(`The port ${port} is in use: give another one by --port.`);
    throw new Problem(`The board cannot listen at ${host}, port ${port}: ${messageOf(error)}.`, { cause: error });
  }
  return `http://${bracketed(host)}:${(server.address() as AddressInfo).port}/`;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function bracketed(host: string): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}
