type Args = Record<string, unknown>;
export type ModelName = 'Team' | 'Visit' | 'Member' | 'Badge' | 'Desk' | 'Note' | 'Tag' | 'Mascot' | 'Word';

interface End {
  readonly model: ModelName;
  readonly list: boolean;
}

const list = (model: ModelName): End => ({ model, list: true });
const one = (model: ModelName): End => ({ model, list: false });

const RELATIONS: Readonly<Record<ModelName, Readonly<Record<string, End>>>> = {
  Team: { members: list('Member'), mascot: one('Mascot') },
  Visit: { host: one('Member'), desk: one('Desk') },
  Member: {
    team: one('Team'),
    desk: one('Desk'),
    badge: one('Badge'),
    notes: list('Note'),
    tags: list('Tag'),
    visits: list('Visit'),
    boss: one('Member'),
    reports: list('Member'),
    fans: list('Member'),
    idols: list('Member'),
  },
  Badge: { member: one('Member') },
  Desk: { member: one('Member'), visit: one('Visit') },
  Note: { member: one('Member') },
  Tag: { members: list('Member') },
  Mascot: { team: one('Team') },
  Word: { connect: one('Word'), update: list('Word') },
};

const MODELS = [...Object.keys(RELATIONS), 'Member', 'Member'] as ModelName[];
export const MANY = ['updateMany', 'updateManyAndReturn', 'deleteMany'];
const OPERATIONS = ['create', 'createMany', 'createManyAndReturn', 'update', 'update', 'upsert', 'delete', ...MANY];
const NEW = ['create', 'connect', 'connectOrCreate'];
const ONE = [...NEW, 'disconnect', 'update', 'upsert', 'delete'];
const LIST = [...ONE, 'set', 'updateMany', 'deleteMany'];

/** The rows of `rows.ts`; the last one is not there. */
const IDS: Readonly<Record<ModelName, readonly number[]>> = {
  Team: [1, 1, 1, 9],
  Visit: [1, 1, 1, 9],
  Member: [1, 2, 3, 3, 3, 9],
  Badge: [1, 1, 1, 9],
  Desk: [1, 1, 1, 9],
  Note: [3, 3, 3, 9],
  Tag: [1, 1, 1, 9],
  Mascot: [1, 1, 1, 9],
  Word: [1, 2, 2, 9],
};

export interface Payload {
  readonly model: ModelName;
  readonly operation: string;
  readonly args: Args;
}

/** A write that a list of numbers decides on, so that fast-check can make it simpler. */
export function payload(decisions: readonly number[]): Payload {
  return new Builder(decisions).build();
}

/** Whether a write nests one that begins at or leads to a model of these. */
export function reaches(model: ModelName, data: unknown, models: (name: ModelName) => boolean): boolean {
  if (typeof data !== 'object' || data === null) return false;
  if (Array.isArray(data)) return data.some((each) => reaches(model, each, models));
  return Object.entries(RELATIONS[model]).some(([field, end]) => {
    const nested = (data as Args)[field];
    if (nested === undefined) return false;
    const parts = Object.values(nested as object).flatMap((given: Args) => [
      given,
      given['data'],
      given['create'],
      given['update'],
    ]);
    return models(model) || models(end.model) || parts.some((part) => reaches(end.model, part, models));
  });
}

class Builder {
  readonly #decisions: readonly number[];
  #next = 0;
  #made = 0;

  constructor(decisions: readonly number[]) {
    this.#decisions = decisions;
  }

  build(): Payload {
    const model = this.#pick(MODELS);
    const operation = this.#pick(OPERATIONS);
    return { model, operation, args: this.#args(model, operation) };
  }

  #args(model: ModelName, operation: string): Args {
    const where = () => ({ ...this.#unique(model), ...(this.#decide(3) ? {} : this.#condition(model, 2)) });
    switch (operation) {
      case 'create':
        return { data: this.#row(model, 3, false), ...this.#shape(model) };
      case 'createMany':
      case 'createManyAndReturn':
        return { data: [this.#columns(model, false), this.#columns(model, false)] };
      case 'upsert':
        return {
          where: where(),
          create: this.#row(model, 3, false),
          update: this.#row(model, 3, true),
          ...this.#shape(model),
        };
      case 'update':
        return { where: where(), data: this.#row(model, 3, true), ...this.#shape(model) };
      case 'delete':
        return { where: where(), ...this.#shape(model) };
      default: {
        const condition = this.#decide(3) ? { where: this.#condition(model, 2) } : {};
        const data = operation === 'deleteMany' ? {} : { data: this.#changes(model) };
        return { ...condition, ...data, ...(this.#decide(8) ? {} : { limit: 1 }) };
      }
    }
  }

  /** The data of a row: its columns, and what hangs from it. Half of the writes nest none. */
  #row(model: ModelName, depth: number, exists: boolean, isNested = false): Args {
    const data: Args = exists ? this.#changes(model) : this.#columns(model, isNested);
    // With a foreign key in its data, Prisma takes no relation.
    if (!exists && (model === 'Note' || model === 'Mascot')) return data;
    const relations = Object.entries(RELATIONS[model]);
    for (let count = depth > 0 ? Math.max(0, this.#decide(6) - 3) : 0; count > 0; count--) {
      const [field, end] = relations[this.#decide(relations.length)] as [string, End];
      const name = this.#pick(exists ? (end.list ? LIST : ONE) : NEW);
      data[field] ??= { [name]: this.#operation(name, end, depth - 1) };
    }
    return data;
  }

  #operation(name: string, { model, list }: End, depth: number): unknown {
    const row = (exists: boolean) => this.#row(model, depth, exists, true);
    switch (name) {
      case 'create':
        return row(false);
      case 'connectOrCreate':
        return { where: this.#unique(model), create: row(false) };
      case 'update':
        return list ? { where: this.#unique(model), data: row(true) } : row(true);
      case 'upsert':
        return { ...(list && { where: this.#unique(model) }), create: row(false), update: row(true) };
      case 'updateMany':
        return { where: this.#condition(model, 1), data: this.#changes(model) };
      case 'deleteMany':
        return this.#condition(model, 1);
      case 'set':
        return this.#decide(2) ? [] : [this.#unique(model)];
      case 'disconnect':
      case 'delete':
        return list ? this.#unique(model) : true;
      default:
        return this.#unique(model);
    }
  }

  #columns(model: ModelName, isNested: boolean): Args {
    const name = `made ${this.#made++}`;
    if (model === 'Team') return { name };
    if (model === 'Visit') return { purpose: name };
    const row = { name, value: 77 };
    if (model === 'Note') return { ...row, number: 10 + this.#made, ...(!isNested && { memberId: 1 }) };
    return model === 'Mascot' && !isNested ? { ...row, teamId: 2 } : row;
  }

  #changes(model: ModelName): Args {
    if (model === 'Team') return { name: 'changed' };
    if (model === 'Visit') return { purpose: 'changed' };
    if (model === 'Word') return { value: 77, create: 1, set: { set: 2 }, delete: 3, data: { where: 1 } };
    return this.#pick([{ value: 77 }, { value: { increment: 1 } }, { name: 'changed' }]);
  }

  #unique(model: ModelName): Args {
    const id = this.#pick(IDS[model]);
    if (model !== 'Note') return { id };
    return this.#decide(2) ? { memberId_number: { memberId: id, number: 1 } } : { title: { name: 'note', number: 1 } };
  }

  /** With everything that Prisma may take for no row or for every row. */
  #condition(model: ModelName, depth: number): Args {
    const related = () => this.#pick([{}, { OR: [] }, { OR: [{}] }, { name: { not: 'x' } }]);
    const some = () => Array.from({ length: this.#decide(3) }, () => this.#condition(model, depth - 1));
    const fields = Object.entries(model === 'Team' || model === 'Visit' ? {} : RELATIONS[model]);
    const parts: ReadonlyArray<() => Args> = [
      () => ({}),
      () => ({}),
      () =>
        model === 'Team' || model === 'Visit' ? {} : { value: this.#pick<unknown>([1, { in: [] }, { not: 1 }, {}]) },
      () => ({ OR: some() }),
      () => ({ AND: this.#decide(2) ? some() : this.#condition(model, depth - 1) }),
      () => ({ NOT: this.#decide(2) ? some() : this.#condition(model, depth - 1) }),
      () => {
        const [field, end] = fields.length > 0 ? this.#pick(fields) : [];
        if (field === undefined || end === undefined || end.model === 'Visit') return {};
        return { [field]: { [this.#pick(end.list ? ['some', 'none', 'every'] : ['is', 'isNot'])]: related() } };
      },
    ];
    return depth === 0 ? {} : Object.assign({}, this.#pick(parts)(), this.#pick(parts)());
  }

  /** What of the row is asked for. */
  #shape(model: ModelName): Args {
    const some = { [this.#pick(Object.keys(RELATIONS[model]))]: true };
    return this.#pick([
      {},
      {},
      { include: some },
      { select: some },
      { omit: model === 'Visit' ? { purpose: true } : { name: true } },
    ]);
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#decide(items.length)] as T;
  }

  #decide(choices: number): number {
    return (this.#decisions[this.#next++] ?? 0) % choices;
  }
}
