import type { Model, Relation } from './database.js';
import { type Args, also, type Claim, claimed, type Fence, isOurs, plain, withToken } from './fence.js';
import { leadsTo } from './fencing.js';
import { type Parent, refuseUnsafe, type Step } from './unsafe.js';

/** A write in the form that it is sent in, and the rows to claim before. */
export interface Plan {
  readonly data: Args;
  readonly claims: readonly Claim[];
}

/** Plans the data of a new row of `model`, with all that hangs from it. @throws InvalidOptionError */
export function planCreate(model: string, data: unknown, fence: Fence): Plan {
  const plan = new Planner(fence);
  return { data: plan.row(model, data, undefined), claims: plan.claims };
}

/** Plans the new data of a row of `model` that is there. @throws InvalidOptionError */
export function planUpdate(model: string, data: unknown, parent: Parent, fence: Fence): Plan {
  const plan = new Planner(fence);
  return { data: plan.row(model, data, parent), claims: plan.claims };
}

/** Whether the data has relations in it. */
export function isNested(model: string, data: unknown, fence: Fence): boolean {
  const relations = fence.models.get(model)?.relations;
  return relations !== undefined && Object.entries(data ?? {}).some(([name, value]) => value && relations.has(name));
}

/**
 * Goes down through the data of one write, the way the database client will. A nested write that makes rows gets the
 * token into their data; one that meets existing rows of a fenced model has them claimed before anything is sent,
 * found through the relation from its parent, and is then held to the claimed ones. What a claim cannot make safe
 * is refused.
 */
class Planner {
  readonly claims: Claim[] = [];
  readonly #fence: Fence;

  constructor(fence: Fence) {
    this.#fence = fence;
  }

  row(model: string, data: unknown, parent: Parent | undefined): Args {
    const row = withToken(model, data, this.#fence);
    const relations = this.#fence.models.get(model)?.relations;
    for (const [name, value] of Object.entries(row)) {
      const relation = relations?.get(name);
      if (relation !== undefined && value) row[name] = this.#relation(model, name, relation, value as Args, parent);
    }
    return row;
  }

  #relation(holder: string, field: string, relation: Relation, payload: Args, parent: Parent | undefined): Args {
    const fence = this.#fence;
    if (!fence.concerns(relation.model) && !isOurs(holder, fence)) return payload;
    const given = Object.entries(payload).filter(([, value]) => value !== undefined && value !== false);
    const names = given.map(([name]) => name);
    const step: Step = { holder, field, relation, names, parent, fence };
    const isConditional = (model: string) => isOurs(model, fence);
    if (!relation.shape?.list && parent !== undefined && isConditional(relation.model) && names[0] === 'upsert') {
      refuseUnsafe(step);
      return this.#toOneUpsert(step, payload['upsert'] as Args, parent);
    }
    if (isConditional(holder) || leadsTo(relation.model, fence.models, isConditional)) refuseUnsafe(step);
    return Object.fromEntries(given.map(([name, value]) => [name, this.#operation(step, name, value)]));
  }

  #operation(step: Step, name: string, value: unknown): unknown {
    const { relation, parent } = step;
    const { model } = relation;
    const list = relation.shape?.list ?? Array.isArray(value);
    switch (name) {
      case 'create':
        return each(value, (row) => this.row(model, row, undefined));
      case 'createMany': {
        const rows = each((value as Args)['data'], (row) => withToken(model, row, this.#fence));
        return { ...(value as Args), data: rows };
      }
      case 'connect':
        return each(value, (unique) => this.#join(step, unique));
      case 'connectOrCreate':
        return each(value, ({ where, create, ...rest }) => ({
          ...rest,
          where: this.#join(step, where),
          create: this.row(model, create, undefined),
        }));
      case 'disconnect':
        if (!movesTarget(step)) return value;
        return list ? each(value, (unique) => this.#met(step, unique, true)) : this.#met(step, value, false);
      case 'delete':
        return list ? each(value, (unique) => this.#met(step, unique, true)) : this.#met(step, value, false);
      case 'deleteMany':
        return each(value, (where) => this.#met(step, where, false));
      case 'updateMany':
        return each(value, ({ where, data }) => ({
          where: this.#met(step, where, false),
          data: withToken(model, data, this.#fence),
        }));
      case 'update':
        if (parent === undefined) return value;
        return each(value, (given) => {
          const { where, data } = list ? given : toOneUpdate(given, this.#fence.models.get(model));
          const next = this.#below(step, where, list);
          const sent = { where: this.#met(step, where, list), data: this.row(model, data, next) };
          return sent.where === undefined ? { data: sent.data } : sent;
        });
      case 'upsert':
        if (parent === undefined) return value;
        return each(value, ({ where, create, update, ...rest }) => {
          const next = this.#below(step, where, list);
          const condition = this.#met(step, where, list);
          return {
            ...rest,
            ...(condition === undefined ? {} : { where: condition }),
            create: this.row(model, create, undefined),
            update: this.row(model, update, next),
          };
        });
      default:
        return value;
    }
  }

  /**
   * An update or a create, whichever the claim shows it to be. Prisma's own upsert through a relation to one takes a
   * condition for one on the parent, where there is no such row.
   */
  #toOneUpsert(step: Step, { where, create, update }: Args, parent: Parent): Args {
    const { model } = step.relation;
    const changed = this.row(model, update, this.#below(step, where, false));
    const made = this.row(model, create, undefined);
    const payload: Args = {};
    const settle = (count: number) => {
      if (count === 0) payload['create'] = made;
      else payload['update'] = { where: this.#held(where ?? {}), data: changed };
    };
    const shown = where ?? { [step.relation.back]: parent.where };
    this.claims.push({ model, where: this.#below(step, where, false).where, shown, one: true, settle });
    return payload;
  }

  /** A row that gets connected, wherever it was: it is written itself if it holds the key. */
  #join(step: Step, unique: unknown): unknown {
    const { model } = step.relation;
    if (!isOurs(model, this.#fence) || !movesTarget(step)) return unique;
    this.claims.push({ model, where: plain(model, unique, this.#fence), shown: unique, one: true });
    return this.#held(unique);
  }

  /** Rows that hang from the parent and get written: claimed, and the condition that keeps to the claimed ones. */
  #met(step: Step, where: unknown, unique: boolean): unknown {
    const { model, shape } = step.relation;
    if (!isOurs(model, this.#fence) || step.parent === undefined) return where;
    const filter = where === true || where === undefined ? {} : where;
    const shown = where === true || where === undefined ? { [step.relation.back]: step.parent.where } : where;
    const { where: path } = this.#below(step, where, unique);
    this.claims.push({ model, where: path, shown, one: unique || shape?.list === false });
    return this.#held(filter);
  }

  /** A fence that the caller asked for has become ours by the claim. */
  #held(where: unknown): Args {
    const { [this.#fence.field]: _, ...rest } = where as Args;
    return also(rest, claimed(this.#fence));
  }

  /** The nested row as the parent of what hangs from it in turn. */
  #below({ relation, parent }: Step, where: unknown, unique: boolean): Parent {
    const filter = where === true || where === undefined ? {} : (where as Args);
    const own = unique ? plain(relation.model, filter, this.#fence) : filter;
    const path = { [relation.back]: { [relation.shape?.backList ? 'some' : 'is']: parent?.where ?? {} } };
    return { where: { AND: [own, path] }, claimed: isOurs(relation.model, this.#fence) };
  }
}

/** Whether connecting and disconnecting write the row at the other end. */
function movesTarget({ relation: { shape } }: Step): boolean {
  return shape !== undefined && !shape.holdsKey && !(shape.list && shape.backList);
}

/** The two forms of a to-one update, told apart as the database client does: by what fits. */
function toOneUpdate(given: Args, model: Model | undefined): { where?: unknown; data: unknown } {
  const { where, data, ...rest } = given;
  const isField = (name: string) => model?.columns.has(name) || model?.relations.has(name);
  const fits = data !== null && typeof data === 'object' && Object.keys(data).every(isField);
  return fits && Object.keys(rest).length === 0 ? { where, data } : { data: given };
}

function each(value: unknown, change: (item: Args) => unknown): unknown {
  return Array.isArray(value) ? value.map((item: Args) => change(item)) : change(value as Args);
}
