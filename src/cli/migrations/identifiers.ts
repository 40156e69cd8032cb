export interface Table {
  readonly name: string;
  readonly schema: string | undefined;
}

export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
export const tableName = ({ schema, name }: Table) =>
  schema === undefined ? identifier(name) : `${identifier(schema)}.${identifier(name)}`;
