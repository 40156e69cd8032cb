/** No server of this kind can be had here. The message says how to get one, so it can be shown as the reason of a skip. */
export class ServerUnavailable extends Error {
  override readonly name = 'ServerUnavailable';
}

/** The server belongs to somebody else, so it may not be killed, frozen or started again. */
export class NotSupervised extends Error {
  override readonly name = 'NotSupervised';

  constructor(verb: string, kind: string) {
    super(
      `${verb}: not supervised. The server comes from ${kind}, and only a server that was started here can be stopped or frozen.`,
    );
  }
}
