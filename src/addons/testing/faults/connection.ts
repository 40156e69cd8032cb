import { connect, type Socket } from 'node:net';
import { CommitWatcher } from './commit-watcher.js';
import { breakOff, type Direction, Lane, type Verdict } from './lane.js';

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** What the Postgres protocol says about a piece of data. */
export interface Seen {
  readonly commit: boolean;
  readonly commitReply: boolean;
}

export type Judge = (direction: Direction, data: Buffer, seen: Seen) => Verdict;

/** One client of the proxy and its connection to the server. */
export class ProxiedConnection {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly lanes: Readonly<Record<Direction, Lane>>;
  constructor(client: Socket, { host, port }: Target, judge: Judge, closed: () => void) {
    this.#client = client;
    this.#server = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const cut = () => this.reset();
    // It reads everything, whether somebody asks or not: the protocol can only be followed from its beginning.
    const commits = new CommitWatcher();
    this.lanes = {
      toServer: new Lane(
        client,
        this.#server,
        (data) => judge('toServer', data, { commit: commits.hasCommit(data), commitReply: false }),
        cut,
      ),
      toClient: new Lane(
        this.#server,
        client,
        (data) => judge('toClient', data, { commit: false, commitReply: commits.hasCommitReply(data) }),
        cut,
      ),
    };
    for (const socket of [client, this.#server]) {
      // What follows from an error is done on 'close'.
      socket.on('error', () => {});
      socket.on('close', () => {
        if (client.destroyed && this.#server.destroyed) closed();
      });
    }
  }

  /** RST to both sides; what was still held back is lost. */
  reset(): void {
    for (const lane of Object.values(this.lanes)) lane.discard();
    breakOff(this.#client);
    breakOff(this.#server);
  }
}
