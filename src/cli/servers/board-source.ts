import { sourceOf } from '../../addons/board/client-source.js';
import type { BoardSource, Health } from '../../addons/board/source.js';
import { makeObservable } from '../../call/observed.js';
import type { Asked, Context } from '../context.js';
import { advised, messageOf } from '../problem.js';
import { openLocks, type ServerOptions } from './locks.js';

interface Opened {
  readonly source: BoardSource;
  close(): Promise<void>;
}

/** What a board shows of both servers, over connections that are opened when somebody looks. */
export function boardSource(context: Context, options: ServerOptions, asked: Asked): BoardSource {
  let opened: Promise<Opened> | undefined;
  let last: BoardSource | undefined;
  const source = async () => {
    opened ??= open(context, options).catch((error: unknown) => {
      opened = undefined;
      throw new Error(advised(error), { cause: error });
    });
    last = (await opened).source;
    return last;
  };
  return {
    look: async (recent) => (await source()).look(recent),
    forceRelease: async (key, holder) => (await source()).forceRelease(key, holder),
    history: async (key) => (await source()).history(key),
    health: async () => ({
      ...(await source().then((open) => open.health(), notOpened)),
      // From the URL: it is known also where the server cannot be reached.
      database: asked.postgres.address,
    }),
    topology: () => last?.topology() ?? [],
    rest() {
      const open = opened;
      opened = undefined;
      last = undefined;
      open?.then(({ close }) => close()).catch(() => {});
    },
  };
}

async function open(context: Context, options: ServerOptions): Promise<Opened> {
  const { inspect, take, history, observed, close } = await openLocks(context, options, true);
  const forceRelease = async (...given: Parameters<typeof take>) => {
    const taken = await take(...given);
    return taken !== undefined && (taken.leaseTaken || taken.ended.length > 0);
  };
  const $locks = { inspect, forceRelease, history };
  makeObservable($locks, observed);
  return { source: sourceOf({ $locks }), close };
}

function notOpened(error: unknown): Health {
  const message = `${messageOf(error)}.`;
  const server = message.startsWith('PostgreSQL') ? 'postgres' : 'redis';
  const remedy = 'Check the server and its URL.';
  return { findings: [{ server, check: 'connection', status: 'fault', message, remedy }] };
}
