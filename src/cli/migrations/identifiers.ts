export interface Table {
  readonly name: string;
  readonly schema: string | undefined;
}

export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
/** The name of a table as a person writes it, such as `public.stock` or `"a.b"`. Without quotes, its case stays, too. */
export function readTable(text: string): Table | undefined {
  const [, schema, name] = /^(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)$/.exec(text) ?? [];
  const plain = (part: string) => (part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part);
  return name === undefined ? undefined : { name: plain(name), schema: schema && plain(schema) };
}

export const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
export const tableName = ({ schema, name }: Table) =>
  schema === undefined ? identifier(name) : `${identifier(schema)}.${identifier(name)}`;

/** The text between dollar quotes. A name in it may have the usual tag, which would end it. */
export function dollarQuoted(text: string): string {
  let tag = 'fenced_lock';
  while (text.includes(`$${tag}$`)) tag += '_';
  return `$${tag}$${text}$${tag}$`;
}
