export interface Table {
  readonly name: string;
  readonly schema: string | undefined;
}

export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
export const tableName = ({ schema, name }: Table) =>
  schema === undefined ? identifier(name) : `${identifier(schema)}.${identifier(name)}`;

/** The text between dollar quotes. A name in it may have the usual tag, which would end it. */
export function dollarQuoted(text: string): string {
  let tag = 'fenced_lock';
  while (text.includes(`$${tag}$`)) tag += '_';
  return `$${tag}$${text}$${tag}$`;
}
