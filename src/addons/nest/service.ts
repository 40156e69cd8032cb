import { currentTx } from '../../current.js';
import type {
  CurrentTxOptions,
  HandleState,
  Lock,
  LockHandle,
  LockMessage,
  LockOptions,
  LockTx,
  OnceOptions,
  OnceResult,
  Permit,
  PermitHandle,
  PermitOptions,
  ResumeOptions,
  TryLockOptions,
  TryResult,
} from '../../index.js';
import type { LockClient, LockOperators } from './client.js';

type Keys = string | readonly string[];
type Work<Client, R> = (tx: LockTx<Client>, lock: Lock) => R | Promise<R>;
// biome-ignore lint/suspicious/noExplicitAny: a client that is known by its shape alone has no types of them
type Verb = (...given: any[]) => Promise<any>;
type VerbName = Exclude<LockMessage['operation'], 'handle.$transaction'>;

/** The locks of one client, to be injected. `Client`: its type, such as that of your PrismaService. */
export class FencedLockService<Client extends object = LockClient> {
  /** The client that the locks are taken on. */
  readonly client: Client;
  readonly #verbs: Readonly<Record<VerbName, Verb>>;

  constructor(client: Client) {
    this.client = client;
    this.#verbs = client as never;
  }

  /** As `prisma.$withLock`. */
  withLock<R>(key: Keys, fn: Work<Client, R>, options?: LockOptions): Promise<R> {
    return this.#verbs.$withLock(key, fn, options);
  }

  /** As `prisma.$tryWithLock`. */
  tryWithLock<R>(key: Keys, fn: Work<Client, R>, options?: TryLockOptions): Promise<TryResult<R>> {
    return this.#verbs.$tryWithLock(key, fn, options);
  }

  /** As `prisma.$oncePer`. */
  oncePer<R>(key: string, interval: number, fn: Work<Client, R>, options?: OnceOptions): Promise<OnceResult<R>> {
    return this.#verbs.$oncePer(key, interval, fn, options);
  }

  /** As `prisma.$lock`. */
  lock(key: Keys, options?: LockOptions): Promise<LockHandle<LockTx<Client>>> {
    return this.#verbs.$lock(key, options);
  }

  /** As `prisma.$withPermit`. */
  withPermit<R>(
    key: string,
    of: PermitOptions,
    fn: (tx: LockTx<Client>, lock: Permit) => R | Promise<R>,
    options?: LockOptions,
  ): Promise<R> {
    return this.#verbs.$withPermit(key, of, fn, options);
  }

  /** As `prisma.$tryWithPermit`. */
  tryWithPermit<R>(
    key: string,
    of: PermitOptions,
    fn: (tx: LockTx<Client>, lock: Permit) => R | Promise<R>,
    options?: TryLockOptions,
  ): Promise<TryResult<R>> {
    return this.#verbs.$tryWithPermit(key, of, fn, options);
  }

  /** As `prisma.$permit`. */
  permit(key: string, of: PermitOptions, options?: LockOptions): Promise<PermitHandle<LockTx<Client>>> {
    return this.#verbs.$permit(key, of, options);
  }

  /** As `prisma.$resumeLock`. */
  resumeLock(state: HandleState, options?: ResumeOptions): Promise<LockHandle<LockTx<Client>>> {
    return this.#verbs.$resumeLock(state, options);
  }

  /** As `currentTx(prisma)`. */
  currentTx(options?: CurrentTxOptions): LockTx<Client> {
    return currentTx(this.client, options);
  }

  /** For operators, as `prisma.$locks`. */
  get locks(): LockOperators {
    return (this.client as unknown as LockClient).$locks;
  }
}
