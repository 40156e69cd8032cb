import { type BeforeApplicationShutdown, Inject, Module, type OnApplicationShutdown, Optional } from '@nestjs/common';
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { after, stop, type Timer } from '../../base/clock.js';
import { Connections, type HttpHost } from './connections.js';
import { type MessageServers, Messages } from './messages.js';
import { ConfigurableModuleClass, type FencedLockModuleOptions, MODULE_OPTIONS_TOKEN } from './options.js';

/** How long somebody may wait who comes for a lock while a server still listens; ms. */
const CLOSE_AGAIN = 200;

/**
 * A locking client in Nest: its providers, and its end, which Nest calls at `app.close()`, and at a signal where
 * `app.enableShutdownHooks()` was called.
 *
 * 1. `beforeApplicationShutdown`: callers that wait for a lock are turned away (`CLOSED`), the work that runs ends, leases are given
 *    back. So the requests and messages behind them are answered, and Nest can close its servers, which it does next. From the
 *    beginning of this on, HTTP connections end with their next answer. `app.close()` of a microservice closes its server first of
 *    all, and so turns callers away then.
 * 2. `onApplicationShutdown`: the client is disconnected.
 */
export class FencedLockModule
  extends ConfigurableModuleClass
  implements BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #options: FencedLockModuleOptions;
  readonly #host: HttpHost | undefined;
  readonly #messages: Messages;
  #http: Connections | undefined;
  #again: Timer | undefined;
  /** Whether no request can come any more. */
  #isOver = false;
  #closing: Promise<void> = Promise.resolve();
  #ended: Promise<void> | undefined;

  constructor(options: FencedLockModuleOptions, host?: HttpHost, servers?: MessageServers) {
    super();
    this.#options = options;
    this.#host = host;
    this.#messages = new Messages(servers, {
      closing: () => {
        // Of a hybrid application, one of several servers may be closed while the others go on.
        if (!this.#connections.areAccepted) this.#close();
      },
      closed: () => {
        this.#stopIfOver();
        // Other modules take locks next, which a close that is under way would turn away.
        return this.#closing;
      },
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.#connections.beginToEnd();
    await this.#options.client.$locks.close();
    // The servers listen until Nest has asked every module, and do not end before their last request. Behind that, other
    // modules take locks in their own hooks.
    if (!this.#mayCome) return;
    this.#connections.whenOver(() => this.#stopIfOver());
    this.#closeAgainLater();
  }

  /** Nest calls it again at each further `app.close()`. */
  onApplicationShutdown(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  get #connections(): Connections {
    // The server is known only when the application has been made.
    this.#http ??= new Connections(this.#host);
    return this.#http;
  }

  /** Whether a request or a message can still come. */
  get #mayCome(): boolean {
    return this.#connections.areAccepted || this.#messages.areAccepted;
  }

  #stopIfOver(): void {
    if (!this.#mayCome) this.#stopClosing();
  }

  #stopClosing(): void {
    this.#isOver = true;
    stop(this.#again);
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
    stop(this.#again);
    this.#again = after(CLOSE_AGAIN, () => {
      this.#connections.closeIdle();
      this.#close();
    }).unref();
  }

  #close(): void {
    const next = () => this.#closeAgainLater();
    this.#closing = this.#options.client.$locks.close().then(next, next);
  }
}

// By hand: this project's compiler has the decorators of the standard, and Nest needs its own.
Module({})(FencedLockModule);
Inject(MODULE_OPTIONS_TOKEN)(FencedLockModule, undefined, 0);
Optional()(FencedLockModule, undefined, 1);
Inject(HttpAdapterHost)(FencedLockModule, undefined, 1);
Optional()(FencedLockModule, undefined, 2);
Inject(ModulesContainer)(FencedLockModule, undefined, 2);
