const OBJECT =
  /^CREATE (?:OR REPLACE )?(?:UNLOGGED )?(TABLE|SEQUENCE|FUNCTION) (?:IF NOT EXISTS )?fenced_lock\.(\w+)/gm;

/** The objects that a script creates in the schema fenced_lock, such as `function admit`. */
export function objectsIn(sql: string): string[] {
  return [...new Set([...sql.matchAll(OBJECT)].map(([, kind = '', name]) => `${kind.toLowerCase()} ${name}`))];
}
