import type { Model } from '../database/database.js';
import { schemaOf } from './adapter.js';
import type { PrismaInternals } from './internals.js';

/** How a model is called on the client: `stock` for `Stock`. */
export function nameOnClient(model: string): string {
  return model.charAt(0).toLowerCase() + model.slice(1);
}

/** What the schema says of a field: its type and its attributes. The run-time data model does not tell all of it. */
export function declarationsOf({
  _engineConfig,
}: PrismaInternals): (model: string, field: string) => string | undefined {
  // A comment or a string may have the brace that ends a model.
  const code = (_engineConfig.inlineSchema ?? '').replaceAll(
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"/g,
    (part) => (part.startsWith('"') ? '""' : ' '),
  );
  return (model, field) => {
    const [, fields = ''] = new RegExp(`\\bmodel\\s+${model}\\s*\\{([^}]*)`).exec(code) ?? [];
    return new RegExp(`^\\s*${field}\\s+(.*)`, 'm').exec(fields)?.[1];
  };
}

/** Each model with its table and relations. */
export function modelsOf({ _runtimeDataModel, _engineConfig }: PrismaInternals): ReadonlyMap<string, Model> {
  const { adapter, inlineSchema } = _engineConfig;
  // The second one is the older name of the first.
  const emulatesKeys = /^\s*(?:relationMode|referentialIntegrity)\s*=\s*"prisma"/m.test(inlineSchema ?? '');
  const models = Object.entries(_runtimeDataModel.models).map(([name, model]): [string, Model] => {
    const scalars = model.fields.filter(({ kind }) => kind !== 'object');
    const ends = model.fields.filter(({ kind }) => kind === 'object');
    return [
      name,
      {
        /** Asked for when it is needed: the adapter tells it when it has connected. */
        get schema() {
          return model.schema ?? (adapter && schemaOf(adapter));
        },
        table: model.dbName ?? name,
        columns: new Map(scalars.map((field) => [field.name, field.dbName ?? field.name])),
        relations: new Map(ends.map((field) => [field.name, field.type])),
        emulatesKeys: emulatesKeys && ends.length > 0,
        valueOf: (name, json) => fieldValue(scalars.find((field) => field.name === name)?.type, json),
      },
    ];
  });
  return new Map(models);
}

/**
 * Prisma's value of a scalar field, from the JSON that Postgres makes of it; a long number is a text there. A value of which
 * Prisma's type would not keep all stays as it is.
 *
 * @param type as the schema names it.
 */
function fieldValue(type: string | undefined, json: unknown): unknown {
  const text = String(json);
  if (type === 'BigInt' && /^-?\d+$/.test(text)) return BigInt(text);
  if (type === 'Float') return Number(text);
  if (typeof json !== 'string') return json;
  if (type === 'DateTime' && DATE.test(text)) return new Date(/T[^+-]*$/.test(text) ? `${text}Z` : text);
  if (type === 'Bytes' && HEX.test(text)) return Uint8Array.from(Buffer.from(text.slice(2), 'hex'));
  return json;
}

/** With no more than milliseconds. Without a zone it is UTC to Prisma. */
const DATE = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,3})?(?:[+-]\d\d:\d\d)?)?$/;
const HEX = /^\\x(?:[\da-f]{2})*$/;
