import type { Hook, Operation } from '../database/database.js';
import { asPrismaReads } from './arguments.js';

/** What a write of a model, or raw SQL, is called on. */
export interface Target {
  /** The model's name in the schema; empty for raw SQL. */
  readonly model: string;
  /** The method. */
  readonly name: string;
  /** What has the method: the model of Prisma's transaction client, or that client. */
  readonly on: object;
}

/** A relation of the result that the caller asks for: `tx.stock.update(…).orders(…)`. */
interface Relation {
  readonly name: string;
  readonly args: readonly unknown[];
}

/**
 * A write on the `tx` of a client without extensions. It goes through the hook at `tx`: a query extension would take two
 * promises more for each write, and one for each read.
 *
 * When it is called, its arguments are copied and get their condition, if one statement is enough, and Prisma makes an
 * operation of them: `made`. Prisma sends that when it is awaited, which only the hook does. What takes several statements
 * does not use it.
 */
export class HookedWrite implements Operation {
  readonly model: string;
  readonly name: string;
  readonly args: unknown;
  readonly oneStatement: Record<string, unknown> | undefined;
  made: unknown;
  readonly #hook: Hook;
  readonly #target: Target;
  readonly #relations: readonly Relation[];
  #sent: Promise<unknown> | undefined;

  private constructor(hook: Hook, target: Target, args: unknown, relations: readonly Relation[]) {
    this.model = target.model;
    this.name = target.name;
    this.args = args;
    this.#hook = hook;
    this.#target = target;
    this.#relations = relations;
    this.oneStatement = hook.asOneStatement(this);
  }

  static called(hook: Hook, target: Target, args: readonly unknown[]): HookedWrite {
    if (target.model === '') return new HookedWrite(hook, target, args, []);
    try {
      return new HookedWrite(hook, target, asPrismaReads(args[0]), []);
    } catch (error) {
      // A getter of the arguments may throw. Rejects when it is awaited, as Prisma does.
      return new HookedWrite(refusing(error), target, undefined, []);
    }
  }

  /** The same write, of whose result a relation is asked for. */
  through(name: string, args: readonly unknown[]): HookedWrite {
    return new HookedWrite(this.#hook, this.#target, this.args, [...this.#relations, { name, args }]);
  }

  get hasRelation(): boolean {
    return this.#relations.length > 0;
  }

  /** What the method of `made` is called with. */
  get madeWith(): readonly unknown[] {
    const relation = this.#relations.at(-1);
    if (relation !== undefined) return relation.args;
    return this.model === '' ? (this.args as readonly unknown[]) : [this.oneStatement ?? this.args];
  }

  /** Sends it through the hook. Once, however often it is awaited, as Prisma does. */
  start(): Promise<unknown> {
    this.#sent ??= this.#hook.send(this);
    return this.#sent;
  }

  send(args: unknown, name = this.name): Promise<unknown> {
    const isMade = name === this.name && args === (this.oneStatement ?? this.args);
    return (isMade ? this.made : this.#make(name, args, this.#relations)) as Promise<unknown>;
  }

  run(name: string, args: unknown): Promise<unknown> {
    return this.#make(name, args, []) as Promise<unknown>;
  }

  #make(name: string, args: unknown, relations: readonly Relation[]): unknown {
    let operation = callOn(this.#target.on, name, [args]);
    for (const relation of relations) operation = callOn(operation, relation.name, relation.args);
    return operation;
  }
}

function refusing(error: unknown): Hook {
  return { asOneStatement: () => undefined, send: () => Promise.reject(error) };
}

function callOn(on: unknown, name: string, args: readonly unknown[]): unknown {
  const method = Reflect.get(on as object, name) as (...args: readonly unknown[]) => unknown;
  return Reflect.apply(method, on, args);
}
