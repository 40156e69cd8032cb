interface HttpRequest {
  readonly httpVersionMajor: number;
}

interface HttpResponse {
  setHeader(name: string, value: string): unknown;
}

/** The HTTP server of an application, that of Express or of Fastify, as far as its end uses it. */
interface HttpServer {
  readonly listening?: boolean;
  once?(event: 'close', listener: () => void): unknown;
  prependListener?(event: 'request', listener: (request: HttpRequest, response: HttpResponse) => void): unknown;
  closeIdleConnections?(): void;
}

/** How to find the server: Nest has none in an application without HTTP. */
export interface HttpHost {
  readonly httpAdapter?: { getHttpServer?(): unknown } | undefined;
}

/**
 * The connections of an application that ends. Node's server has closed when its last connection has, and a client keeps
 * its connection: for seconds behind its last answer, and for ever if it sends one request after the other.
 */
export class Connections {
  readonly #server: HttpServer | undefined;
  #ending = false;

  constructor(host: HttpHost | undefined) {
    this.#server = host?.httpAdapter?.getHttpServer?.() as HttpServer | undefined;
  }

  /** From now on each answer to a new request is the last one on its connection. */
  beginToEnd(): void {
    if (this.#ending) return;
    this.#ending = true;
    this.#server?.prependListener?.('request', ({ httpVersionMajor }, response) => {
      // HTTP/2 has no such header.
      if (httpVersionMajor === 1) response.setHeader('Connection', 'close');
    });
  }

  /** Whether the server listens; `false` in an application without one. */
  get areAccepted(): boolean {
    return this.#server?.listening === true;
  }

  /** Calls `closed` when the server has closed, its last request included. */
  whenOver(closed: () => void): void {
    this.#server?.once?.('close', closed);
  }

  /** Closes those on which no answer is due. Nest does so once, when it closes the server. */
  closeIdle(): void {
    this.#server?.closeIdleConnections?.();
  }
}
