import { within } from '../../base/clock.js';
import { PLACE } from '../../database/sql.js';
import type { Finding } from './source.js';

/** How long Postgres may take to say where it is; milliseconds. */
const WITHIN = 3_000;

interface Row {
  readonly database: string;
  /** `null` if the session came over a Unix socket. */
  readonly host: string | null;
  readonly port: number | null;
}

/** Which database it is. Postgres itself is asked, because a Prisma client does not tell its URL. */
export class DatabasePlace {
  readonly #query: (text: string, values: readonly unknown[]) => Promise<readonly object[]>;
  #shown: string | undefined;
  #isCurrent = false;

  constructor(query: (text: string, values: readonly unknown[]) => Promise<readonly object[]>) {
    this.#query = query;
  }

  /** `undefined` before the first answer. Without user and password. */
  get shown(): string | undefined {
    return this.#shown;
  }

  /** Asks once, and again after Postgres was away: another server may have taken its place. */
  async follow(health: readonly Finding[]): Promise<void> {
    const isReached = health.some(({ check, status }) => check === 'connection' && status === 'ok');
    if (!isReached) this.#isCurrent = false;
    if (this.#isCurrent || !isReached) return;
    try {
      const rows = await within(this.#query(PLACE, []), WITHIN);
      if (!Array.isArray(rows) || rows[0] === undefined) return;
      this.#shown = shownPlace(rows[0] as Row);
      this.#isCurrent = true;
    } catch {
      // The next health check asks again.
    }
  }
}

function shownPlace({ database, host, port }: Row): string {
  if (host === null) return `Unix socket/${database}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`;
}
