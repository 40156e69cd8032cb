import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type GuardedDir, guardedDir } from './guard.js';
import { membersOf, signal } from './process-members.js';
import { freePort } from './programs.js';
import type { Server } from './server.js';

/** Where the servers listen that are started here. */
export const HOST = '127.0.0.1';

export interface Recipe {
  readonly kind: string;
  readonly command: string;
  args(port: number, dir: string): string[];
  url(port: number): string;
  /** Fills its directory before the first start. */
  prepare?(dir: string): Promise<unknown>;
  /**
   * Resolves to its version if it is ready and ours: another process can have taken the port while ours is still starting.
   * Rejects as long as it is not.
   */
  ready(at: { readonly url: string; readonly pid: number; readonly dir: string }): Promise<string>;
  /** Ends it at once, without saving anything. */
  readonly endSignal: NodeJS.Signals;
  readonly user?: number | undefined;
  /** Made in its directory. Default: no more variables. */
  readonly env?: ((dir: string) => Promise<Readonly<Record<string, string>>>) | undefined;
}

const READY_WITHIN = 30_000;
const END_WITHIN = 5_000;
const PORT_TRIES = 5;

/** One server process with its children, on one port and directory, that can be started again and again. */
export class Supervised implements Server {
  readonly host = HOST;
  readonly kind: string;
  version = '';
  port = 0;
  readonly #recipe: Recipe;
  readonly #dir: GuardedDir;
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | undefined;

  private constructor(recipe: Recipe, dir: GuardedDir, env: Readonly<Record<string, string>>) {
    this.kind = recipe.kind;
    this.#recipe = recipe;
    this.#dir = dir;
    this.#env = env;
  }

  static async start(recipe: Recipe): Promise<Supervised> {
    const { kind, user, endSignal } = recipe;
    const dir = guardedDir(kind, { owner: user, endSignal });
    await recipe.prepare?.(dir.path);
    const server = new Supervised(recipe, dir, (await recipe.env?.(dir.path)) ?? {});
    for (let tries = 1; ; tries++) {
      server.port = await freePort();
      try {
        await server.start();
        return server;
      } catch (error) {
        // The port was free a moment ago; somebody else can have been faster.
        const taken = /address already in use|could not bind/i.test(server.#log());
        if (taken && tries < PORT_TRIES) continue;
        await server.stop();
        throw error;
      }
    }
  }

  get url(): string {
    return this.#recipe.url(this.port);
  }

  /** Its temp directory. */
  get dir(): string {
    return this.#dir.path;
  }

  /** Of its first process. */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the server could not be spawned');
    return pid;
  }

  /** Again on the same port and directory. Resolves when it answers. */
  async start(): Promise<void> {
    if (this.#stopping) throw new Error('the server was stopped for good: its directory is gone');
    if (this.#running()) throw new Error('the server runs already');
    const { command, args, user } = this.#recipe;
    const log = openSync(this.#logFile(), 'w');
    const child = spawn(command, args(this.port, this.dir), {
      cwd: this.dir,
      env: { PATH: process.env['PATH'], LC_ALL: 'C', ...this.#env },
      // Its own session: Ctrl-C is for the tests, which then stop their servers.
      detached: true,
      stdio: ['ignore', log, log],
      ...(user !== undefined && { uid: user, gid: user }),
    });
    closeSync(log);
    this.#child = child;
    this.#exited = new Promise((resolve) => child.once('exit', resolve).once('error', resolve));
    child.unref();
    if (child.pid !== undefined) this.#dir.runs(child.pid);
    await this.#untilReady();
  }

  /** SIGSTOP to all of its processes; those that are forked meanwhile are caught by the next look. */
  freeze(): void {
    const seen = new Set<number>();
    for (let fresh = this.#members(); fresh.length > 0; fresh = this.#members().filter((pid) => !seen.has(pid))) {
      signal(fresh, 'SIGSTOP');
      for (const pid of fresh) seen.add(pid);
    }
  }

  thaw(): void {
    signal(this.#members(), 'SIGCONT');
  }

  /** A crash: frozen first, so that no process sees another one die and still does something. */
  async killHard(): Promise<void> {
    this.freeze();
    await this.#killAll();
  }

  /** Ends without a shutdown of the server's own kind and starts again, so with recovery. */
  async restart(): Promise<void> {
    await this.#end();
    await this.start();
  }

  async #end(): Promise<void> {
    this.thaw();
    if (this.#running()) this.#child?.kill(this.#recipe.endSignal);
    await this.#exitWithin(END_WITHIN);
    await this.#killAll();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#end().then(() => this.#dir.remove());
    return this.#stopping;
  }

  async #killAll(): Promise<void> {
    const deadline = performance.now() + END_WITHIN;
    for (let left = this.#members(); left.length > 0; left = this.#members()) {
      if (performance.now() > deadline) throw new Error(`these processes do not end: ${left.join(', ')}`);
      signal(left, 'SIGKILL');
      await sleep(5);
    }
    await this.#exitWithin(END_WITHIN);
  }

  async #exitWithin(ms: number): Promise<void> {
    // While it is awaited, it has to keep this process alive.
    this.#child?.ref();
    await Promise.race([this.#exited, sleep(ms, undefined, { ref: false })]);
    this.#child?.unref();
  }

  async #untilReady(): Promise<void> {
    const deadline = performance.now() + READY_WITHIN;
    for (;;) {
      if (!this.#running()) throw new Error(`${this.#recipe.command} ended while it was starting.\n${this.#log()}`);
      try {
        this.version = await this.#recipe.ready({ url: this.url, pid: this.pid, dir: this.dir });
        return;
      } catch (cause) {
        if (performance.now() > deadline) {
          await this.#killAll();
          throw new Error(`${this.#recipe.command} is not ready after ${READY_WITHIN} ms.\n${this.#log()}`, { cause });
        }
      }
      await sleep(20);
    }
  }

  #running(): boolean {
    const child = this.#child;
    return child?.pid !== undefined && child.exitCode === null && child.signalCode === null;
  }

  #members(): number[] {
    return membersOf({ dir: this.dir, pid: this.#child?.pid });
  }

  #logFile(): string {
    return join(this.dir, 'server.log');
  }

  #log(): string {
    return readFileSync(this.#logFile(), 'utf8').split('\n').slice(-30).join('\n');
  }
}
