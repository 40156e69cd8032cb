import { now, OVERDUE, within } from '../../base/clock.js';
import { Problem } from '../problem.js';
import type { LastingServers } from '../servers/lasting.js';
import type { Asking } from './sample.js';

/** One of the servers has not answered. `cause`: what went wrong there. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered';
  /** Which one, for people. */
  readonly server: string;

  constructor(server: string, cause: unknown) {
    super(`${server} has not answered.`, { cause });
    this.server = server;
  }
}

/** How long Postgres may take to answer: a machine that was cut off tells nobody that its connections are gone; ms. */
const ANSWERS_WITHIN = 10_000;
/** Between two tries to connect to a node that is down, while the other nodes answer; ms. */
const RENEW_EVERY = 5_000;

/** Over connections that are opened anew after one has failed, until they are closed. The names are for people. */
export function askingAnew(
  servers: LastingServers,
  { keyPrefix, postgres, redis }: { readonly keyPrefix: string; readonly postgres: string; readonly redis: string },
): Asking {
  // What goes on after the view was left opens no connection: nobody would close it.
  const { round } = servers;
  let renewedAt = Number.NEGATIVE_INFINITY;
  return {
    async redis(work) {
      try {
        if (round !== servers.round) throw new Problem('Nobody looks any more.');
        return await servers.withRedis(async (opened) => {
          const answer = await work(opened.locks(keyPrefix));
          const isPartial = opened.servers.some(({ failure }) => failure !== undefined);
          if (isPartial && round === servers.round && now() - renewedAt >= RENEW_EVERY) {
            renewedAt = now();
            servers.renewRedis();
          }
          return answer;
        });
      } catch (error) {
        throw new Unanswered(redis, error);
      }
    },
    async postgres(work) {
      const answered = servers.withDatabase(async (database) => {
        const answer = await within(work(database), ANSWERS_WITHIN);
        if (answer === OVERDUE) throw new Problem(`It did not answer within ${ANSWERS_WITHIN / 1_000} s.`);
        return answer;
      }, round);
      return await answered.catch((error: unknown) => {
        throw new Unanswered(postgres, error);
      });
    },
  };
}
