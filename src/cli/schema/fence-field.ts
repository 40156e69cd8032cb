import { DEFAULTS } from '../../options/options.js';
import type { Table } from '../migrations/identifiers.js';
import { Problem } from '../problem.js';
import type { SchemaField, SchemaModel } from './models.js';

/** The fence field of the model, if it has one. */
export function fenceIn({ fields }: SchemaModel, name: string): SchemaField | undefined {
  return fields.find((field) => field.name === name && isFence(field));
}

function isFence({ type, modifier, attributes }: SchemaField): boolean {
  return type === 'BigInt' && modifier === '' && /@default\(\s*0\s*\)/.test(attributes);
}

/** As `fenceIn`. @throws Problem if the name or the column is used by another field. */
export function fenceOf(model: SchemaModel, name: string): SchemaField | undefined {
  const field = model.fields.find((field) => field.name === name);
  if (field === undefined) {
    const taken = model.fields.find(({ map }) => map === name);
    if (taken === undefined) return undefined;
    throw new Problem(
      `The column "${name}" of model ${model.name} is already used by its field \`${taken.name}\`. ` +
        'Choose another name with --field, and give it to fencedLock as `fenceField`.',
    );
  }
  if (isFence(field)) return field;
  throw new Problem(
    `Model ${model.name} has a field \`${name}\` that is not a fence: it is ${field.type}${field.modifier}` +
      `${field.type === 'BigInt' && field.modifier === '' ? ' without @default(0)' : ''}, and a fence is ` +
      `\`${name} BigInt @default(0)\`. Change it, or choose another name with --field.`,
  );
}

/**
 * The name of the model's fence field: the given one, else the field whose column the guard checks, else the default.
 */
export function fenceNameOf(
  model: SchemaModel,
  given: string | undefined,
  guard: { column: string } | undefined,
): string {
  const guarded = guard && model.fields.find(({ name, map }) => (map ?? name) === guard.column);
  return given ?? guarded?.name ?? DEFAULTS.fenceField;
}

/** The tables of the models that have a fence or, by the migrations, a guard. */
export function fencedTables(
  models: readonly SchemaModel[],
  guards: { has(table: Table): boolean },
  field: string = DEFAULTS.fenceField,
): Table[] {
  return models
    .filter(({ kind }) => kind === 'model')
    .map(({ table, schema, fields }) => ({ table: { name: table, schema }, fields }))
    .filter(({ table, fields }) => guards.has(table) || fields.some(({ name }) => name === field))
    .map(({ table }) => table);
}

/** Adds the field after the model's last field. How its columns stand is left to `prisma format`. */
export function withFence(text: string, model: SchemaModel, name: string): string {
  const last = model.fields.at(-1);
  const line = last && text.slice(last.start, last.end);
  if (last === undefined || !line?.endsWith('\n')) {
    throw new Problem(`Model ${model.name} has no line of its own for each field: format the schema first.`);
  }
  const indent = /^[ \t]*/.exec(line)?.[0] ?? '';
  const ending = line.endsWith('\r\n') ? '\r\n' : '\n';
  return `${text.slice(0, last.end)}${indent}${name} BigInt @default(0)${ending}${text.slice(last.end)}`;
}

/** Removes the field: its line, and the documentation comment directly above. */
export function withoutFence(text: string, model: SchemaModel, field: SchemaField): string {
  const user = new RegExp(`^.*(?<![\\p{L}\\p{N}_.@])${field.name}(?![\\p{L}\\p{N}_]).*$`, 'mu').exec(
    model.attributes,
  )?.[0];
  if (user !== undefined) {
    throw new Problem(
      `The field \`${field.name}\` of model ${model.name} is used by ${user.trim()}: remove that first.`,
    );
  }
  let start = field.start;
  for (;;) {
    const above = text.slice(0, start).match(/(?:^|\n)([ \t]*\/\/\/[^\n]*\n)$/)?.[1];
    if (above === undefined) return text.slice(0, start) + text.slice(field.end);
    start -= above.length;
  }
}
