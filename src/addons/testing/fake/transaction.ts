import type { Lock } from '../../../call/lock.js';
import type { Connection } from '../../../database/database.js';
import { FencedTx } from '../../../prisma/tx.js';
import { modelOf, writes } from './client.js';
import { microtasks, OF_OPERATION } from './clock.js';
import { isModel, type MockCall, MockClient } from './mock.js';
import type { Plan } from './plan.js';

/** What the script says of a transaction, and the lock that it runs under. */
interface Scripted {
  readonly plan: Plan;
  readonly lock: Pick<Lock, 'token'>;
  readonly named: string;
  readonly ofHandle: boolean;
  /** The lease is lost. */
  lose(): void;
}

/** `losesAnswer`: whether the answer to its COMMIT is lost. */
type FakeConnection = Pick<Connection, 'conductor'> & { losesAnswer: boolean };

/** One fake transaction: its operations are counted, and refused where the script or the gate of the connection says so. */
export class FakeTransaction {
  /** Its client, which knows what its function has called and not awaited. */
  readonly own: FencedTx;
  readonly #connection: FakeConnection;
  #scripted: Scripted | undefined;
  /** The error of a write that the script has refused: it stays, also if the function swallows it. */
  #refusal: unknown;
  #begun = 0;
  #done = 0;

  constructor(mock: object, key: string, connection: FakeConnection) {
    this.#connection = connection;
    const sending = {
      admit: (call: MockCall) => this.#admit(call),
      settled: async () => {
        await microtasks(OF_OPERATION);
        this.#isDone();
      },
    };
    const models = { has: (name: string) => isModel(Reflect.get(mock, name)) };
    this.own = new FencedTx(new MockClient(mock, sending).proxy, key, models);
  }

  close(): void {
    const { gate } = this.#connection.conductor ?? {};
    try {
      gate?.enter('');
    } catch {
      // The function goes on until its next operation, which is refused by that reason and not by the end of the transaction.
      return;
    }
    gate?.leave();
    this.own.isClosed = true;
  }

  follow(scripted: Scripted): void {
    this.#scripted = scripted;
  }

  /** Called when the function has returned, and before COMMIT. @throws what the script says */
  async end(): Promise<void> {
    if (this.#scripted === undefined) return;
    const { plan, lose, named } = this.#scripted;
    if (plan.lost) lose();
    // It wrote nothing that could have been refused.
    if (plan.refused && this.#refusal === undefined) throw this.#refuse();
    if (plan.fails) throw await plan.fails.error(named);
    this.#connection.losesAnswer = plan.unanswered === true;
  }

  /** @throws what the gate or the script says. */
  #admit(call: MockCall): void {
    const { conductor } = this.#connection;
    conductor?.gate.enter('');
    const { refused } = this.#scripted?.plan ?? {};
    if (refused !== undefined && this.#begun++ >= refused.after && writes(call)) this.#refuse(call.model);
    // As a statement that has failed.
    if (this.#refusal !== undefined) throw conductor?.gate.failed(this.#refusal);
    conductor?.gate.leave();
  }

  #refuse(model?: string): unknown {
    const { plan, named, lock, ofHandle } = this.#scripted as Scripted;
    this.#refusal ??= plan.refused?.error(named, lock.token, ofHandle, model && modelOf(model));
    return this.#refusal;
  }

  #isDone(): void {
    this.#done++;
    const { plan, lose } = this.#scripted ?? {};
    if (plan?.lost && this.#done >= plan.lost.after) lose?.();
  }
}
