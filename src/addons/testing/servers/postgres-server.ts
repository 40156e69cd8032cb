import type { MakeClock } from './wall-clock.js';

export interface PostgresServer {
  readonly kind: 'embedded' | 'PATH' | 'DATABASE_URL' | 'testcontainers';
  /** Whether kill, start, restart, freeze and thaw work; otherwise they throw `NotSupervised`, and so does `pid`. */
  readonly supervised: boolean;
  readonly version: string;
  readonly host: string;
  readonly port: number;
  /** The postmaster's. */
  readonly pid: number;
  /** Its temp directory, if it has one here. */
  readonly dir: string | undefined;
  /** A superuser's, to a database that was empty. */
  readonly url: string;
  urlFor(user: string, password?: string): string;
  /** One more empty database, gone with the server. Returns a superuser's url. */
  createDatabase(): Promise<string>;
  /** A crash: SIGKILL to the postmaster and all its children. */
  killHard(): Promise<void>;
  /** Again on the same directory and port. Resolves when it accepts connections. */
  start(): Promise<void>;
  /** Ends in immediate mode and starts again, so with crash recovery. */
  restart(): Promise<void>;
  freeze(): void;
  thaw(): void;
  /** So many milliseconds ahead of the true time; throws unless it was started with a `clock` that can be moved. */
  moveClock(ms: number): void;
  /** May be called more than once. */
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** Server settings, such as `{ fsync: 'off' }`. Only for a server that is started here. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Its wall clock. Default: the true time. */
  readonly clock?: MakeClock | undefined;
}

/** The same server and database as somebody else. */
export function withUser(url: string, user: string, password = ''): string {
  const changed = new URL(url);
  changed.username = encodeURIComponent(user);
  changed.password = encodeURIComponent(password);
  return changed.href;
}

export function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}
