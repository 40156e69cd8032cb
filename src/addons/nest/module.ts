import { type BeforeApplicationShutdown, Inject, Module, type OnApplicationShutdown, Optional } from '@nestjs/common';
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { after } from '../../base/clock.js';
import { ConfigurableModuleClass, type FencedLockModuleOptions, MODULE_OPTIONS_TOKEN } from './options.js';
import { type HttpHost, type MessageServers, Servers } from './servers.js';

/** How long somebody may wait who comes for a lock while a server is still open; ms. */
const CLOSE_AGAIN = 200;

/**
 * A locking client in Nest: its providers, and its end, which Nest calls at `app.close()`, and at a signal where
 * `app.enableShutdownHooks()` was called.
 *
 * 1. `beforeApplicationShutdown`: callers that wait for a lock are turned away (`CLOSED`), the work that runs ends, leases are given
 *    back. So the requests and messages behind them are answered, and Nest can close its servers, which it does next. Until they
 *    have closed, who comes for a lock and has to wait is turned away, too. `app.close()` of a microservice closes its server
 *    first of all, and so turns callers away then. Behind that, other modules may take locks in their own hooks.
 * 2. `onApplicationShutdown`: the client is disconnected.
 */
export class FencedLockModule
  extends ConfigurableModuleClass
  implements BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #options: FencedLockModuleOptions;
  readonly #servers: Servers;
  /** Until no request and no message can come any more. */
  #turningAway: Promise<void> | undefined;
  #ended: Promise<void> | undefined;

  constructor(options: FencedLockModuleOptions, host?: HttpHost, servers?: MessageServers) {
    super();
    this.#options = options;
    this.#servers = new Servers(host, servers, {
      closing: () => this.#turnAway(true),
      closed: () => (this.#servers.areOpen ? undefined : this.#turningAway),
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.#servers.beginToEnd();
    await this.#options.client.$locks.close();
    this.#turnAway(false);
  }

  /** Nest calls it again at each further `app.close()`. */
  onApplicationShutdown(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  #turnAway(isFirst: boolean): void {
    // What a close rejects with is told by the last one, in `#end`.
    const close = () => this.#options.client.$locks.close().catch(() => {});
    const whileOpen = async () => {
      if (isFirst) await close();
      while (this.#servers.areOpen) {
        await new Promise<void>((resolve) => after(CLOSE_AGAIN, resolve));
        this.#servers.closeIdle();
        if (this.#servers.areOpen) await close();
      }
      this.#turningAway = undefined;
    };
    if (this.#servers.areOpen) this.#turningAway ??= whileOpen();
  }

  async #end(): Promise<void> {
    this.#servers.forget();
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
Optional()(FencedLockModule, undefined, 1);
Inject(HttpAdapterHost)(FencedLockModule, undefined, 1);
Optional()(FencedLockModule, undefined, 2);
Inject(ModulesContainer)(FencedLockModule, undefined, 2);
