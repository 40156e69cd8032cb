import type { Hook, Operation } from '../database/database.js';
import { asPrismaReads } from './arguments.js';

type Callable = Record<string, (...given: unknown[]) => unknown>;

/** A write of a model, or raw SQL, as the caller has called it. */
interface Called {
  /** Its name in the schema; empty for raw SQL. */
  readonly model: string;
  readonly name: string;
  /** What Prisma has it on: the model of the transaction's client, or that client. */
  readonly on: object;
  readonly given: readonly unknown[];
}

/** A relation of the result: `tx.stock.update(…).orders(…)`. */
interface Relation {
  readonly name: string;
  readonly given: readonly unknown[];
}

/**
 * A write on the `tx` of a client without extensions. It goes through the hook at `tx`: a query extension would take two
 * promises and a copy of the arguments more for each operation of the transaction, reads included.
 */
export class HookedWrite implements Operation {
  readonly model: string;
  readonly name: string;
  readonly args: unknown;
  readonly hasRelation: boolean;
  readonly oneStatement: Record<string, unknown> | undefined;
  /** Prisma's operation of this call, by the arguments that `given` tells. Not sent unless the hook sends it. */
  made: unknown;
  readonly #hook: Hook;
  readonly #called: Called;
  readonly #relations: readonly Relation[];
  #sent: Promise<unknown> | undefined;

  constructor(hook: Hook, called: Called, relations: readonly Relation[] = []) {
    this.model = called.model;
    this.name = called.name;
    this.args = called.model === '' ? called.given : asPrismaReads(called.given[0]);
    this.hasRelation = relations.length > 0;
    this.#hook = hook;
    this.#called = called;
    this.#relations = relations;
    this.oneStatement = hook.asOneStatement(this);
  }

  /** What Prisma's method is called with in place of what the caller has given. */
  get given(): readonly unknown[] {
    const relation = this.#relations.at(-1);
    if (relation !== undefined) return relation.given;
    return this.oneStatement === undefined ? this.#called.given : [this.oneStatement];
  }

  /** The same write, of whose result a relation is asked for. */
  through(relation: Relation): HookedWrite {
    return new HookedWrite(this.#hook, this.#called, [...this.#relations, relation]);
  }

  /** Sends it through the hook. Once, however often it is awaited, as Prisma does. */
  start(): Promise<unknown> {
    this.#sent ??= this.#hook.send(this);
    return this.#sent;
  }

  send(args: unknown, name = this.name): Promise<unknown> {
    const isMade = name === this.name && (args === this.oneStatement || args === this.args);
    return (isMade ? this.made : this.#make(name, args, this.#relations)) as Promise<unknown>;
  }

  run(name: string, args: unknown): Promise<unknown> {
    return this.#make(name, args, []) as Promise<unknown>;
  }

  #make(name: string, args: unknown, relations: readonly Relation[]): unknown {
    const operation = (this.#called.on as Callable)[name]?.(args);
    return relations.reduce((made, { name, given }) => (made as Callable)[name]?.(...given), operation);
  }
}
