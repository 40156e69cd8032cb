import type { Rows } from './rows.js';

type Args = Record<string, unknown>;
type ModelName = 'Team' | 'Visit' | 'Member' | 'Badge' | 'Desk' | 'Note' | 'Tag' | 'Mascot';

interface End {
  readonly model: ModelName;
  readonly list: boolean;
  /** Its row cannot be without the other, so there is no disconnecting. */
  readonly required?: boolean;
}

const list = (model: ModelName, required = false): End => ({ model, list: true, required });
const one = (model: ModelName, required = false): End => ({ model, list: false, required });

const RELATIONS: Readonly<Record<ModelName, Readonly<Record<string, End>>>> = {
  Team: { members: list('Member'), mascot: one('Mascot', true) },
  Visit: { host: one('Member'), desk: one('Desk') },
  Member: {
    team: one('Team'),
    desk: one('Desk'),
    badge: one('Badge'),
    notes: list('Note', true),
    tags: list('Tag'),
    visits: list('Visit'),
    boss: one('Member'),
    reports: list('Member'),
    fans: list('Member'),
    idols: list('Member'),
  },
  Badge: { member: one('Member') },
  Desk: { member: one('Member'), visit: one('Visit') },
  Note: { member: one('Member', true) },
  Tag: { members: list('Member') },
  Mascot: { team: one('Team', true) },
};

const MODELS = Object.keys(RELATIONS) as ModelName[];
const LIST = [
  'create',
  'connect',
  'connectOrCreate',
  'disconnect',
  'set',
  'update',
  'updateMany',
  'upsert',
  'delete',
  'deleteMany',
];
const ONE = ['create', 'connect', 'connectOrCreate', 'disconnect', 'update', 'upsert', 'delete'];
const NEW = ['create', 'connect', 'connectOrCreate'];

export interface Payload {
  readonly model: ModelName;
  readonly operation: string;
  readonly args: Args;
}

/** A write that a list of numbers decides on, so that fast-check can make it simpler. */
export function payload(decisions: readonly number[], rows: Rows): Payload {
  return new Builder(decisions, rows).build();
}

class Builder {
  readonly #decisions: readonly number[];
  readonly #rows: Rows;
  #next = 0;
  #made = 0;

  constructor(decisions: readonly number[], rows: Rows) {
    this.#decisions = decisions;
    this.#rows = rows;
  }

  build(): Payload {
    const model = this.#pick(MODELS);
    const operation = this.#pick([
      'update',
      'update',
      'update',
      'update',
      'upsert',
      'create',
      'updateMany',
      'delete',
      'deleteMany',
    ]);
    const where = this.#unique(model);
    const update = () => this.#row(model, 3, true);
    const create = () => this.#row(model, 3, false);
    switch (operation) {
      case 'create':
        return { model, operation, args: { data: create() } };
      case 'upsert':
        return { model, operation, args: { where, create: create(), update: update() } };
      case 'updateMany':
        return { model, operation, args: { where: this.#filter(), data: this.#changes(model) } };
      case 'deleteMany':
        return { model, operation, args: { where: this.#filter() } };
      case 'delete':
        return { model, operation, args: { where } };
      default:
        return {
          model,
          operation,
          args: { where, data: update(), ...(this.#decide(2) ? { include: this.#include(model) } : {}) },
        };
    }
  }

  /** The data of a row: its columns, and what hangs from it. */
  #row(model: ModelName, depth: number, exists: boolean): Args {
    const data: Args = exists ? this.#changes(model) : this.#columns(model);
    const relations = Object.entries(RELATIONS[model]);
    for (let count = depth > 0 ? this.#decide(3) : 0; count > 0; count--) {
      const [field, end] = relations[this.#decide(relations.length)] ?? [];
      if (field === undefined || end === undefined || field in data) continue;
      const name = this.#pick(exists ? (end.list ? LIST : ONE) : NEW);
      data[field] = { [name]: this.#operation(name, end, depth - 1) };
    }
    return data;
  }

  #operation(name: string, { model, list }: End, depth: number): unknown {
    switch (name) {
      case 'create':
        return this.#row(model, depth, false);
      case 'connectOrCreate':
        return { where: this.#unique(model), create: this.#row(model, depth, false) };
      case 'update': {
        const data = this.#row(model, depth, true);
        return list ? { where: this.#unique(model), data } : data;
      }
      case 'upsert': {
        const both = { create: this.#row(model, depth, false), update: this.#row(model, depth, true) };
        return list ? { where: this.#unique(model), ...both } : both;
      }
      case 'updateMany':
        return { where: this.#filter(model), data: this.#changes(model) };
      case 'deleteMany':
        return this.#filter(model);
      case 'set':
        return this.#decide(2) ? [] : [this.#unique(model)];
      case 'disconnect':
      case 'delete':
        return list ? this.#unique(model) : true;
      default:
        return this.#unique(model);
    }
  }

  #columns(model: ModelName): Args {
    const name = `made ${this.#rows.n} ${this.#made++}`;
    if (model === 'Team') return { name };
    if (model === 'Visit') return { purpose: name };
    return model === 'Note' ? { name, value: 77, number: 10 + this.#made } : { name, value: 77 };
  }

  #changes(model: ModelName): Args {
    if (model === 'Team') return {};
    return model === 'Visit' ? { purpose: 'changed' } : { value: 77 };
  }

  #unique(model: ModelName): Args {
    const { team, visit, Member, boss, loner, Badge, Desk, Note, Tag, Mascot } = this.#rows;
    if (model === 'Note') return { memberId_number: { memberId: Note, number: 1 } };
    const ids = {
      Team: [team],
      Visit: [visit],
      Member: [Member, boss, loner],
      Badge: [Badge],
      Desk: [Desk],
      Tag: [Tag],
      Mascot: [Mascot],
    };
    return { id: this.#pick(ids[model]) };
  }

  /** Never beyond the rows of this run. */
  #filter(model?: ModelName): Args {
    const { n } = this.#rows;
    return model === 'Visit' ? { purpose: 'v' } : { name: { endsWith: ` ${n}` } };
  }

  #include(model: ModelName): Args {
    return { [this.#pick(Object.keys(RELATIONS[model]))]: true };
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#decide(items.length)] as T;
  }

  #decide(choices: number): number {
    return (this.#decisions[this.#next++] ?? 0) % choices;
  }
}
