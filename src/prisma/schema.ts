import type { Model, Relation } from '../fence/database.js';

/** A field of the run-time data model of a Prisma 7 client. */
export interface Field {
  readonly name: string;
  readonly kind: string;
  readonly type: string;
  readonly dbName?: string | null;
  readonly relationName?: string;
}

export interface DataModel {
  readonly models: Readonly<
    Record<
      string,
      { readonly fields: readonly Field[]; readonly dbName: string | null; readonly schema?: string | null }
    >
  >;
}

/**
 * The models of a client. What its run-time data model does not tell, lists and where the foreign key stands, is
 * read from the text of the schema, which the client carries for its query compiler.
 */
export function readModels(data: DataModel, schemaText: unknown, defaultSchema: string): ReadonlyMap<string, Model> {
  const text = typeof schemaText === 'string' ? schemaText : '';
  const models = Object.entries(data.models).map(([name, model]): [string, Model] => {
    const scalars = model.fields.filter(({ kind }) => kind !== 'object');
    const ends = model.fields.filter(({ kind }) => kind === 'object');
    const relations = ends.map((field): [string, Relation] => [field.name, relationOf(data, text, name, field)]);
    return [
      name,
      {
        schema: model.schema ?? defaultSchema,
        table: model.dbName ?? name,
        columns: new Map(scalars.map((field) => [field.name, field.dbName ?? field.name])),
        relations: new Map(relations),
      },
    ];
  });
  return new Map(models);
}

function relationOf(data: DataModel, text: string, model: string, field: Field): Relation {
  const others = (data.models[field.type]?.fields ?? []).filter(
    (other) => other.relationName === field.relationName && other.type === model,
  );
  // In a relation of a model with itself both ends are there.
  const back = (field.type === model ? others.find(({ name }) => name !== field.name) : others[0])?.name ?? '';
  const here = declaration(text, model, field.name);
  const there = declaration(text, field.type, back);
  const shape =
    here === undefined || there === undefined
      ? undefined
      : { list: here.list, backList: there.list, holdsKey: here.holdsKey };
  return { model: field.type, back, shape };
}

/** How a relation field is declared, or `undefined` where the text does not tell. */
function declaration(text: string, model: string, field: string) {
  const block = new RegExp(`^[ \\t]*(?:model|view)\\s+${model}\\s*\\{([\\s\\S]*?)^[ \\t]*\\}`, 'm').exec(text)?.[1];
  // To the next line that begins with two words, which is another field: arguments may stand on several lines.
  const found = new RegExp(
    `^[ \\t]*${field}\\s+\\w+(\\[\\]|\\?)?([^\\n]*(?:\\n(?![ \\t]*\\w+[ \\t]+\\w)[^\\n]*)*)`,
    'm',
  ).exec(block ?? '');
  if (found === null) return undefined;
  const attributes = (found[2] ?? '').replaceAll(/\/\/.*$/gm, '');
  return { list: found[1] === '[]', holdsKey: /@relation\s*\([^@]*\bfields\s*:/.test(attributes) };
}
