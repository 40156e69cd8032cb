import { DEFAULTS } from '../../options/options.js';
import type { Guard } from '../migrations/guard-sql.js';
import type { Table } from '../migrations/identifiers.js';
import { Problem } from '../problem.js';
import type { Change } from './changes.js';
import type { Project } from './locate.js';
import type { SchemaField, SchemaModel } from './schema.js';

/** A model, its field of a fence if it has one, and the guard that its table has by the migrations. */
export interface Fence {
  readonly model: SchemaModel;
  readonly name: string;
  readonly field: SchemaField | undefined;
  readonly guard: Guard | undefined;
}

/** The fence of each model. Its field has the given name, else that of the guard's column, else the default. */
export function fencesOf({ models, history }: Project, given?: string): Fence[] {
  return models.map((model) => {
    const guard = history.guardOf(model.table);
    const name = given ?? model.fields.find(({ column }) => column === guard?.column)?.name ?? DEFAULTS.fenceField;
    const isFence = ({ declared }: SchemaField) => /^BigInt(?![?[\w]).*@default\(\s*0\s*\)/.test(declared);
    const field = model.fields.find((each) => each.name === name && isFence(each));
    return { model, name, field, guard };
  });
}

/** The fences of the models with these names, each once, in the given order. @throws Problem */
export function choose(fences: readonly Fence[], names: readonly string[]): Fence[] {
  return [...new Set(names)].map((wanted) => {
    const fence = fences.find(({ model }) => model.name === wanted);
    if (fence === undefined) {
      const all = fences.map(({ model }) => model.name).join(', ') || 'none';
      throw new Problem(`There is no model ${wanted} in the schema. It has ${all}.`);
    }
    return refuseOther(fence);
  });
}

/** @throws Problem if the name or the column is used by another field */
export function refuseOther(fence: Fence): Fence {
  const { model, name, field } = fence;
  const other = model.fields.find((each) => each.name === name) ?? model.fields.find(({ column }) => column === name);
  if (field !== undefined || other === undefined) return fence;
  if (other.name !== name) {
    throw new Problem(
      `The column "${name}" of model ${model.name} is already used by its field \`${other.name}\`. ` +
        'Choose another name with --field, and give it to fencedLock as `fenceField`.',
    );
  }
  throw new Problem(
    `Model ${model.name} has a field \`${name}\` that is not a fence: it is \`${other.declared}\`, and a fence is ` +
      `\`${name} BigInt @default(0)\`. Change it, or choose another name with --field.`,
  );
}

/** The tables with a fence or a guard. */
export function tablesOf(fences: readonly Fence[]): Table[] {
  return fences.filter(({ field, guard }) => field || guard).map(({ model }) => model.table);
}

/** The changed schema files. Models of a file are edited from the last to the first, so that their offsets stay valid. */
export function edited(
  { schema }: Project,
  fences: readonly Fence[],
  edit: (text: string, fence: Fence) => string,
): Change[] {
  return [...schema].flatMap(([path, before]) => {
    const here = fences.filter(({ model }) => model.file === path);
    const place = ({ model }: Fence) => model.fields[0]?.start ?? 0;
    const after = here.toSorted((a, b) => place(b) - place(a)).reduce(edit, before);
    return after === before ? [] : [{ path, before, after }];
  });
}

/** Adds the field after the model's last field. How its columns stand is left to `prisma format`. */
export function withFence(text: string, { model, name, field }: Fence): string {
  if (field !== undefined) return text;
  const last = model.fields.at(-1);
  if (last === undefined) throw new Problem(`Model ${model.name} has no fields: \`npx prisma validate\` says so, too.`);
  const line = text.slice(last.start, last.end);
  const indent = /^[ \t]*/.exec(line)?.[0] ?? '';
  const ending = line.endsWith('\r\n') ? '\r\n' : '\n';
  return `${text.slice(0, last.end)}${indent}${name} BigInt @default(0)${ending}${text.slice(last.end)}`;
}

/** Removes the line of the field. */
export function withoutFence(text: string, { model, field }: Fence): string {
  if (field === undefined) return text;
  const word = new RegExp(`(?<![\\p{L}\\p{N}_.@])${field.name}(?![\\p{L}\\p{N}_])`, 'u');
  const user = model.attributes.find((attribute) => word.test(attribute));
  if (user === undefined) return text.slice(0, field.start) + text.slice(field.end);
  throw new Problem(`The field \`${field.name}\` of model ${model.name} is used by ${user}: remove that first.`);
}

/** The client option that omits these fields from rows, because JSON.stringify fails for a bigint. */
export function omitLine(fences: readonly Fence[]): string {
  const client = ({ name }: SchemaModel) => name.charAt(0).toLowerCase() + name.slice(1);
  return `omit: { ${fences.map(({ model, name }) => `${client(model)}: { ${name}: true }`).join(', ')} }`;
}
