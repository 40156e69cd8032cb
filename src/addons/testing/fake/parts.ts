import type { FencedLockEvent } from '../../../base/events.js';
import { CallHooks, RunningHooks } from '../../../call/hooks.js';
import type { LockOptions, ResolvedLockOptions } from '../../../options/options.js';
import { Admissions } from './admissions.js';
import { CallRecord, type FakeCall } from './calls.js';
import { microtasks, OF_REACTIONS } from './lazy.js';
import { type Plan, Script } from './plan.js';
import { Runs } from './runs.js';
import { type FakeTurn, Turns, type Wait } from './turns.js';

/** A call after the checks of its arguments. */
export interface FakeLockCall {
  readonly method: FakeCall['method'];
  /** The client that the method was called on. */
  readonly client: object;
  readonly keys: readonly string[];
  readonly options: ResolvedLockOptions;
  /** The options as the caller gave them. */
  readonly given: LockOptions;
  /** Called when the transaction has committed, before its keys are free. */
  readonly committed?: () => void;
}

/** How a call comes by its keys. */
interface Acquisition extends Omit<Wait, 'onWait' | 'elsewhere'> {
  /** Default: the leases. */
  readonly from?: Turns;
  /** What the script says of it. */
  readonly plan?: Plan | undefined;
}

interface OpenHandle {
  close(): Promise<void>;
}

/** What the calls of one fake share. */
export class FakeParts {
  /** What the functions under locks work on. */
  readonly base: object;
  calls: CallRecord[] = [];
  events: FencedLockEvent[] = [];
  /** Who has which key. */
  readonly turns = new Turns();
  /** Whose transaction has the rows of which keys in Postgres: those of a handle, and who resumes it. */
  readonly rows = new Turns();
  readonly admissions = new Admissions();
  readonly script = new Script();
  readonly runs = new Runs();
  /** Those that have not been released. */
  readonly handles = new Set<OpenHandle>();
  readonly #hooks = new RunningHooks();

  constructor(base: object) {
    this.base = base;
  }

  record(method: FakeCall['method'], keys: readonly string[]): CallRecord {
    const record = new CallRecord(method, keys);
    this.calls.push(record);
    return record;
  }

  hooksOf(keys: readonly string[], { hookErrors }: ResolvedLockOptions): CallHooks {
    const emit = (event: FencedLockEvent) => void this.events.push(event);
    return new CallHooks({ parts: { hooks: this.#hooks, emit }, key: keys[0] as string, hookErrors });
  }

  /**
   * Takes the keys of the call and goes on with `use`. Notes why it did not come to that.
   *
   * @throws what the script says in place of a turn, LockTimeoutError, ClosedError, the signal's reason, or what `use` throws.
   */
  async acquire<T>(
    record: CallRecord,
    { from = this.turns, plan, ...wait }: Acquisition,
    use: (turn: FakeTurn) => T,
  ): Promise<T> {
    const onWait = (key: string) => {
      if (from === this.turns) record.waitedFor.push(key);
    };
    try {
      if (plan?.unsaid) throw plan.unsaid;
      if (plan?.instead) throw plan.instead(plan.key ?? (record.keys[0] as string));
      const turn = await from.take(record.keys, { ...wait, onWait });
      try {
        // As on servers, a call that is not let in yet when the client is closed is turned away.
        this.turns.throwIfClosing(turn.keys[0] as string);
        return use(turn);
      } catch (error) {
        turn.release();
        throw error;
      }
    } catch (error) {
      record.end('not acquired', error);
      throw error;
    }
  }

  /** Turns away who waits, gives back handles, and awaits what runs. `last` runs while calls are still turned away. */
  async close(last: () => unknown = () => {}): Promise<void> {
    const givenBack = async () => {
      const handles = [...this.handles].map((handle) => handle.close());
      await Promise.all([this.turns.close(), this.rows.close(), ...handles]);
      // The hooks of a call begin some microtasks behind its release.
      await microtasks(OF_REACTIONS);
    };
    await givenBack();
    // Hooks may have taken locks since.
    while (await this.#hooks.idle()) await givenBack();
    const open = this.turns.shut();
    try {
      // Of calls that have come in between.
      await givenBack();
      await this.#hooks.idle();
      await last();
    } finally {
      open();
    }
  }
}
