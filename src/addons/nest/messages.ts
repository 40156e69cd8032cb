/** The server of a microservice, as far as its end is watched. */
interface MessageServer {
  close?(): unknown;
}

/** Where Nest keeps these servers, also those that are connected later. Nest before 11.1.4 tells nobody of them. */
export interface MessageServers {
  getRpcTargetRegistry?(): { subscribe(found: (target: unknown) => void): unknown };
}

interface Heard {
  /** A server begins to close. */
  closing(): void;
  /** It has closed, or has failed to. Nest goes on when this resolves. */
  closed(): Promise<void>;
}

/**
 * The servers of messages of an application: Nest's transports and custom ones. Some wait for the handlers that run before they
 * have closed, as Kafka's and the graceful one of gRPC do. Nest calls no hook behind that and before the hooks of the modules, so
 * `close` of each is watched.
 */
export class Messages {
  readonly #open = new Set<object>();

  constructor(servers: MessageServers | undefined, heard: Heard) {
    servers?.getRpcTargetRegistry?.().subscribe((found) => this.#watch(found as MessageServer, heard));
  }

  /** Whether a server has not closed yet. */
  get areAccepted(): boolean {
    return this.#open.size > 0;
  }

  #watch(server: MessageServer, heard: Heard): void {
    if (typeof server.close !== 'function') return;
    const close = server.close.bind(server);
    this.#open.add(server);
    server.close = async () => {
      heard.closing();
      try {
        return await close();
      } finally {
        this.#open.delete(server);
        await heard.closed();
      }
    };
  }
}
