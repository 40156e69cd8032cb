import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { guard } from '../../src/addons/testing/servers/guard.js';

/** What a worker sends by `process.send`. */
export interface WorkerMessage {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface WorkerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const MESSAGE_WITHIN = 20_000;
const END_WITHIN = 2_000;
const OUTPUT_KEPT = 8_000;

/** Starts a TypeScript file as a process with an IPC channel. It dies with this process, even if it is frozen. */
export function startWorker(file: string | URL, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Worker {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  const path = file instanceof URL ? decodeURIComponent(file.pathname) : file;
  return new Worker(
    spawn(process.execPath, ['--import', tsx, path, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    }),
  );
}

export class Worker {
  readonly exited: Promise<WorkerExit>;
  readonly #child: ChildProcess;
  #unread: WorkerMessage[] = [];
  #looking = new Set<() => void>();
  #output = '';
  #exit: WorkerExit | undefined;

  constructor(child: ChildProcess) {
    this.#child = child;
    const held = guard(child.pid === undefined ? {} : { pid: child.pid });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-OUTPUT_KEPT);
      });
    }
    child.on('message', (message) => {
      this.#unread.push(message as WorkerMessage);
      this.#look();
    });
    this.exited = new Promise((resolve) => {
      const end = (exit: WorkerExit) => {
        this.#exit = exit;
        held();
        resolve(exit);
        this.#look();
      };
      // 'close', not 'exit': only then all of its messages and its output are here.
      child.once('close', (code, signal) => end({ code, signal }));
      child.once('error', (error) => {
        this.#output += error.message;
        if (child.pid === undefined) end({ code: null, signal: null });
      });
    });
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error(`the worker could not be started: ${this.#output}`);
    return this.#child.pid;
  }

  /** The end of what it wrote to stdout and stderr. */
  get output(): string {
    return this.#output;
  }

  /** The oldest message of this type that was not taken yet; rejects if the worker ends without one. */
  async next<M extends WorkerMessage>(type: M['type'], { within = MESSAGE_WITHIN } = {}): Promise<M> {
    const deadline = performance.now() + within;
    for (;;) {
      const index = this.#unread.findIndex((message) => message.type === type);
      if (index >= 0) return this.#unread.splice(index, 1)[0] as M;
      if (this.#exit)
        throw new Error(`the worker ended (${JSON.stringify(this.#exit)}) without '${type}':\n${this.#output}`);
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`no '${type}' from the worker within ${within} ms:\n${this.#output}`);
      await this.#news(left);
    }
  }

  send(message: WorkerMessage): void {
    // A worker that ended meanwhile is no error of the sender: `exited` and `next` tell.
    this.#child.send(message, () => {});
  }

  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  kill(): Promise<WorkerExit> {
    this.#child.kill('SIGKILL');
    return this.exited;
  }

  /** Asks it to end, and kills it if it does not. */
  async stop(): Promise<WorkerExit> {
    this.thaw();
    this.#child.kill('SIGTERM');
    await Promise.race([this.exited, sleep(END_WITHIN, undefined, { ref: false })]);
    return this.kill();
  }

  /** Something has happened, or the time is over. */
  #news(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#looking.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#looking.add(done);
    });
  }

  #look(): void {
    for (const wake of [...this.#looking]) wake();
  }
}
