import { sourceOf } from '../../addons/board/client-source.js';
import type { BoardSource, Health } from '../../addons/board/source.js';
import type { Context } from '../context.js';
import { advised, messageOf } from '../problem.js';
import { findServers, openLocks } from './locks.js';
import type { ServerOptions } from './urls.js';

/** What a board shows of both servers, over connections that are opened when somebody looks. */
export function boardSource(context: Context, options: ServerOptions, database: string): BoardSource {
  const open = async () => {
    const locks = await openLocks(context, await findServers(context, options, true), options.keyPrefix, true);
    last = sourceOf({ $locks: locks });
    return { ...last, close: locks.close };
  };
  let opened: ReturnType<typeof open> | undefined;
  let last: BoardSource | undefined;
  const source = () => {
    opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw new Error(advised(error), { cause: error });
    });
    return opened;
  };
  return {
    look: async (recent) => (await source()).look(recent),
    forceRelease: async (key, holder) => (await source()).forceRelease(key, holder),
    history: async (key) => (await source()).history(key),
    // The address is known from the URL also where the server cannot be reached.
    health: async () => ({ ...(await source().then((open) => open.health(), notOpened)), database }),
    topology: () => last?.topology() ?? [],
    rest() {
      opened?.then(({ close }) => close()).catch(() => {});
      opened = undefined;
      last = undefined;
    },
  };
}

function notOpened(error: unknown): Health {
  const message = `${messageOf(error)}.`;
  const server = message.startsWith('PostgreSQL') ? 'postgres' : 'redis';
  const remedy = 'Check the server and its URL.';
  return { findings: [{ server, check: 'connection', status: 'fault', message, remedy }] };
}
