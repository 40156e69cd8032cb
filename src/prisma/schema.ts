import type { Model } from '../database/database.js';
import { fieldValue } from './field-values.js';

/** A field of a Prisma 7 client's run-time data model. */
export interface ModelField {
  readonly name: string;
  readonly kind: string;
  readonly type: string;
  readonly dbName?: string | null;
}

export interface DataModel {
  readonly models: Readonly<
    Record<
      string,
      { readonly fields: readonly ModelField[]; readonly dbName: string | null; readonly schema?: string | null }
    >
  >;
}

/** How a model is called on the client: `stock` for `Stock`. */
export function nameOnClient(model: string): string {
  return model.charAt(0).toLowerCase() + model.slice(1);
}

/**
 * Reads the models of a client.
 *
 * @param emulatesKeys whether the client emulates foreign keys (`relationMode = "prisma"`).
 * @param defaultSchema is asked when it is needed: the adapter tells it when it has connected.
 */
export function readModels(
  data: DataModel,
  emulatesKeys: boolean,
  defaultSchema: () => string | undefined,
): ReadonlyMap<string, Model> {
  const models = Object.entries(data.models).map(([name, model]): [string, Model] => {
    const scalars = model.fields.filter(({ kind }) => kind !== 'object');
    const ends = model.fields.filter(({ kind }) => kind === 'object');
    return [
      name,
      {
        get schema() {
          return model.schema ?? defaultSchema();
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
