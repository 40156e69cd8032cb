import { sourceOf } from '../../addons/board/client-source.js';
import type { BoardSource, Health } from '../../addons/board/source.js';
import type { Context } from '../context.js';
import { advised, messageOf } from '../problem.js';
import { findServers, openLocks } from './locks.js';
import type { ServerOptions } from './urls.js';

/** What a board shows of both servers, over connections that are opened when somebody looks. */
export function boardSource(context: Context, options: ServerOptions, database: string): BoardSource {
  const open = async () => {
    const locks = await openLocks(context, await findServers(context, options, true), options.keyPrefix);
    return { ...sourceOf({ $locks: locks }), close: locks.close };
  };
  let opened: ReturnType<typeof open> | undefined;
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
    async health() {
      const { postgres, redis } = await source().then((opened) => opened.health(), notOpened);
      return { postgres: { ...postgres, address: database }, redis };
    },
    rest() {
      opened?.then(({ close }) => close()).catch(() => {});
      opened = undefined;
    },
  };
}

function notOpened(error: unknown): Health {
  const findings = [{ message: `${messageOf(error)}.`, remedy: 'Check the server and its URL.' }];
  return { postgres: { address: '', role: 'database', status: 'not connected', healthy: false, findings }, redis: [] };
}
