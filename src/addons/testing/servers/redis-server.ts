import type { MakeClock } from './wall-clock.js';

export interface RedisServer {
  readonly kind: 'redis-server' | 'valkey-server' | 'REDIS_URL' | 'testcontainers' | 'emulator';
  /** Whether kill, start, freeze and thaw work; otherwise they throw `NotSupervised`. */
  readonly supervised: boolean;
  readonly version: string;
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** Undefined if it is not supervised. */
  readonly pid: number | undefined;
  /** Its temp directory, if it has one here. */
  readonly dir: string | undefined;
  freeze(): void;
  thaw(): void;
  /** So many milliseconds ahead of the true time; throws unless it was started with a `clock` that can be moved. */
  moveClock(ms: number): void;
  killHard(): Promise<void>;
  /** Again on the same port, and empty, since nothing is saved. Resolves when it answers. */
  start(): Promise<void>;
  /** May be called more than once. */
  stop(): Promise<void>;
}

export interface RedisOptions {
  /** js-redis-server, which only imitates Redis: good enough to show something, proves nothing. */
  readonly allowEmulator?: boolean;
  /** More arguments for a server that is started here. It must still answer PING without a password. */
  readonly args?: readonly string[];
  /** Its wall clock. Default: the true time. */
  readonly clock?: MakeClock | undefined;
}
