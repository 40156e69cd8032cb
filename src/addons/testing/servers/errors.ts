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

/** What a server that belongs to somebody else is asked in vain. */
export function unsupervised(kind: string) {
  const refuse = (verb: string): never => {
    throw new NotSupervised(verb, kind);
  };
  return {
    supervised: false,
    dir: undefined,
    killHard: async () => refuse('killHard'),
    start: async () => refuse('start'),
    restart: async () => refuse('restart'),
    freeze: () => refuse('freeze'),
    thaw: () => refuse('thaw'),
    moveClock: () => refuse('moveClock'),
  };
}
