/** The HTTP server of an application, that of Express or of Fastify, as far as its end uses it. */
interface HttpServer {
  readonly listening?: boolean;
  once?(event: 'close', listener: () => void): unknown;
  prependListener?(
    event: 'request',
    listener: (
      request: { readonly httpVersionMajor: number },
      response: { setHeader(name: string, value: string): void },
    ) => void,
  ): unknown;
  closeIdleConnections?(): void;
}

/** How to find that server: Nest has none in an application without HTTP. */
export interface HttpHost {
  readonly httpAdapter?: { getHttpServer?(): unknown } | undefined;
}

/** Where Nest keeps the servers of messages, also those that are connected later. Nest before 11.1.4 tells nobody of them. */
export interface MessageServers {
  getRpcTargetRegistry?(): { subscribe(found: (target: unknown) => void): unknown };
}

/**
 * What can still bring requests and messages to an application. Node's HTTP server has closed when its last connection has; some
 * servers of messages wait for their handlers, and Nest calls no hook around that, so their `close` is watched.
 */
export class Servers {
  readonly #host: HttpHost | undefined;
  readonly #open = new Set<object>();

  /** `closing`: a server of messages is about to close. It has closed when what `closed` gives has resolved. */
  constructor(
    host: HttpHost | undefined,
    servers: MessageServers | undefined,
    heard: { closing(): void; closed(): Promise<void> | undefined },
  ) {
    this.#host = host;
    servers?.getRpcTargetRegistry?.().subscribe((found) => {
      const server = found as { close?(): unknown };
      if (typeof server.close !== 'function') return;
      const close = server.close.bind(server);
      this.#open.add(server);
      server.close = async () => {
        // Of a hybrid application, one of several servers may be closed while the others go on.
        if (this.#http?.listening !== true) heard.closing();
        try {
          return await close();
        } finally {
          this.#open.delete(server);
          await heard.closed();
        }
      };
    });
  }

  get areOpen(): boolean {
    return this.#open.size > 0;
  }

  /** From now on each answer to a new request is the last one on its connection: a client keeps one for seconds or for ever. */
  beginToEnd(): void {
    const http = this.#http;
    if (http?.listening !== true || this.#open.has(http)) return;
    this.#open.add(http);
    http.once?.('close', () => this.#open.delete(http));
    http.prependListener?.('request', ({ httpVersionMajor }, response) => {
      // HTTP/2 has no such header.
      if (httpVersionMajor === 1) response.setHeader('Connection', 'close');
    });
  }

  /** Closes connections on which no answer is due. Nest does so once, when it closes the server. */
  closeIdle(): void {
    this.#http?.closeIdleConnections?.();
  }

  forget(): void {
    this.#open.clear();
  }

  /** Known only when the application has been made. */
  get #http(): HttpServer | undefined {
    return this.#host?.httpAdapter?.getHttpServer?.() as HttpServer | undefined;
  }
}
