const RELATION = /^CREATE (?:UNLOGGED )?(TABLE|SEQUENCE) IF NOT EXISTS fenced_lock\.(\w+)(?: \(\n([\s\S]*?)^\))?/gm;
const COLUMN = /^ {4}(\w+) /gm;
const FUNCTION = /^CREATE OR REPLACE FUNCTION fenced_lock\.(\w+)\(([^)]*)\)/gm;

/** The objects that a script creates in the schema fenced_lock, such as `column admission.key` or `function override(text)`. */
export function objectsIn(sql: string): string[] {
  const relations = [...sql.matchAll(RELATION)].flatMap(([, kind = '', name, columns = '']) => [
    `${kind.toLowerCase()} ${name}`,
    ...[...columns.matchAll(COLUMN)].map(([, column]) => `column ${name}.${column}`),
  ]);
  return [...relations, ...[...sql.matchAll(FUNCTION)].map(([, name, args]) => `function ${name}(${typesOf(args)})`)];
}

/** The types of the arguments that a caller gives, as `oidvectortypes` shows them. */
function typesOf(args = ''): string {
  const given = args.split(',').filter((arg) => !/^\s*(OUT\b|$)/.test(arg));
  return given.map((arg) => arg.trim().replace(/^\w+ | DEFAULT .*$/g, '')).join(', ');
}
