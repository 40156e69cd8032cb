import { type BeforeApplicationShutdown, Inject, Module, type OnApplicationShutdown, Optional } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { after, type Timer } from '../base/clock.js';
import { Connections, type HttpHost } from './connections.js';
import { ConfigurableModuleClass, type FencedLockModuleOptions, MODULE_OPTIONS_TOKEN } from './options.js';

/** How long somebody may wait who comes for a lock while the server still listens; ms. */
const CLOSE_AGAIN = 200;

/**
 * A locking client in Nest: its providers, and its end, which Nest calls at `app.close()`, and at a signal where
 * `app.enableShutdownHooks()` was called.
 *
 * 1. `beforeApplicationShutdown`: callers that wait for a lock are turned away (`CLOSED`), the work that runs ends, leases are given
 *    back. So the requests behind them are answered, and Nest can close the server, which it does next. From the beginning of
 *    this on, HTTP connections end with their next answer.
 * 2. `onApplicationShutdown`: the client is disconnected.
 */
export class FencedLockModule
  extends ConfigurableModuleClass
  implements BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #options: FencedLockModuleOptions;
  readonly #host: HttpHost | undefined;
  #connections: Connections | undefined;
  #again: Timer | undefined;
  /** Whether no request can come any more. */
  #isOver = false;
  #closing: Promise<void> = Promise.resolve();
  #ended: Promise<void> | undefined;

  constructor(options: FencedLockModuleOptions, host?: HttpHost) {
    super();
    this.#options = options;
    this.#host = host;
  }

  async beforeApplicationShutdown(): Promise<void> {
    // The server is known only when the application has been made.
    this.#connections ??= new Connections(this.#host);
    this.#connections.beginToEnd();
    await this.#options.client.$locks.close();
    // The server listens until Nest has asked every module, and does not end before its last request. Behind that, other
    // modules take locks in their own hooks. Without an HTTP server it is not known how long messages come.
    if (!this.#connections.areAccepted) return;
    this.#connections.whenOver(() => this.#stopClosing());
    this.#closeAgainLater();
  }

  /** Nest calls it again at each further `app.close()`. */
  onApplicationShutdown(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  #stopClosing(): void {
    this.#isOver = true;
    this.#again?.stop();
  }

  async #end(): Promise<void> {
    this.#stopClosing();
    await this.#closing;
    const { client, disconnect = true, onClosed } = this.#options;
    try {
      // Either gives back what was taken since.
      await (disconnect ? client.$disconnect() : client.$locks.close());
    } finally {
      await onClosed?.();
    }
  }

  #closeAgainLater(): void {
    if (this.#isOver) return;
    this.#again?.stop();
    this.#again = after(CLOSE_AGAIN, () => {
      this.#connections?.closeIdle();
      const next = () => this.#closeAgainLater();
      this.#closing = this.#options.client.$locks.close().then(next, next);
    }).unref();
  }
}

// By hand: this project's compiler has the decorators of the standard, and Nest needs its own.
Module({})(FencedLockModule);
Inject(MODULE_OPTIONS_TOKEN)(FencedLockModule, undefined, 0);
Optional()(FencedLockModule, undefined, 1);
Inject(HttpAdapterHost)(FencedLockModule, undefined, 1);
