import type { Server } from 'node:http';
import { type BeforeApplicationShutdown, Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { sleep } from '../../base/clock.js';
import { ConfigurableModuleClass, type FencedLockModuleOptions, MODULE_OPTIONS_TOKEN } from './options.js';

/** How long somebody may wait who comes for a lock while the server is still open; ms. */
const CLOSE_AGAIN = 200;

/**
 * A locking client in Nest: its providers, and its end, which Nest calls at `app.close()`, and at a signal where
 * `app.enableShutdownHooks()` was called.
 *
 * 1. `beforeApplicationShutdown`: callers that wait for a lock are turned away (`CLOSED`), the work that runs ends, leases are given
 *    back. So the requests behind them are answered, and Nest can close its HTTP server, which it does next. Until the last connection
 *    has closed, who comes for a lock and has to wait is turned away, too. Behind that, other modules may take locks in their own hooks.
 * 2. `onApplicationShutdown`: the client is disconnected.
 */
export class FencedLockModule
  extends ConfigurableModuleClass
  implements BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #options: FencedLockModuleOptions;
  readonly #host: HttpAdapterHost;
  /** The server of Express or of Fastify can still bring requests. */
  #isOpen = false;
  #turningAway: Promise<void> | undefined;
  #ended: Promise<void> | undefined;

  constructor(options: FencedLockModuleOptions, host: HttpAdapterHost) {
    super();
    this.#options = options;
    this.#host = host;
  }

  async beforeApplicationShutdown(): Promise<void> {
    const server: Server | undefined = this.#host.httpAdapter?.getHttpServer();
    if (server?.listening && !this.#isOpen) this.#beginToEnd(server);
    await this.#options.client.$locks.close();
    if (server && this.#isOpen) this.#turningAway ??= this.#turnAway(server);
  }

  /** Nest calls it again at each further `app.close()`. */
  onApplicationShutdown(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  /** From now on each answer to a new request is the last one on its connection: a client keeps one for seconds or for ever. */
  #beginToEnd(server: Server): void {
    this.#isOpen = true;
    server.once('close', () => {
      this.#isOpen = false;
    });
    server.prependListener('request', ({ httpVersionMajor }, response) => {
      // HTTP/2 has no such header.
      if (httpVersionMajor === 1) response.setHeader('Connection', 'close');
    });
  }

  async #turnAway(server: Server): Promise<void> {
    while (this.#isOpen) {
      await sleep(CLOSE_AGAIN);
      // Connections on which no answer is due. Nest does so once, when it closes the server; one of HTTP/2 has no such method.
      server.closeIdleConnections?.();
      // What a close rejects with is told by the last one, in `#end`.
      if (this.#isOpen) await this.#options.client.$locks.close().catch(() => {});
    }
  }

  async #end(): Promise<void> {
    this.#isOpen = false;
    await this.#turningAway;
    const { client, disconnect = true, onClosed } = this.#options;
    try {
      // Either gives back what was taken since.
      await (disconnect ? client.$disconnect() : client.$locks.close());
    } finally {
      await onClosed?.();
    }
  }
}

// By hand: this project's compiler has the decorators of the standard, and Nest needs its own.
Module({})(FencedLockModule);
Inject(MODULE_OPTIONS_TOKEN)(FencedLockModule, undefined, 0);
Inject(HttpAdapterHost)(FencedLockModule, undefined, 1);
