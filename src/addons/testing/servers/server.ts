/** No server of this kind can be had here. The message says how to get one, so it can be shown as the reason of a skip. */
export class ServerUnavailable extends Error {
  override readonly name = 'ServerUnavailable';
}

/** A server for tests: a process that is supervised here, or one of somebody else. */
export interface Server {
  /** Where it comes from: a program, a package, Docker, or an environment variable. */
  readonly kind: string;
  readonly version: string;
  readonly url: string;
  /** May be called more than once. */
  stop(): Promise<void>;
}
