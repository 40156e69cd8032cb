/** Text that cannot contain a keyword: comments without nested ones, strings, quoted identifiers. */
const NOISE = /--[^\r\n]*|\/\*(?:(?!\/\*|\*\/).)*\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\1\$/gs;
const COMMENT = /\/\*(?:(?!\/\*|\*\/).)*\*\//gs;

/** The statement without comments, strings and quoted identifiers. */
export function withoutNoise(sql: string): string {
  // Block comments nest.
  return withoutInnermost(sql.replaceAll(NOISE, ' '), COMMENT);
}

/** Removes what matches, then what matches in the rest, until nothing does. */
export function withoutInnermost(sql: string, innermost: RegExp): string {
  let text = sql;
  for (let longer = ''; longer !== text; ) {
    longer = text;
    text = text.replaceAll(innermost, ' ');
  }
  return text;
}

const BEGINS = /^[\s(]*(?:insert|update|delete|merge|truncate|copy|call|do)\b/i;
const EXPLAINS = /^[\s(]*explain\s*(?:\(([^)]*)\)|((?:(?:analyze|analyse|verbose)\b\s*)+))/i;
const RUNS = /\banaly[zs]e\b(?!\s*(?:false|off|no|0)\b)/i;
const WITH = /^[\s(]*with\b/i;
/** In WITH, a part follows an opening parenthesis, and the main statement follows a closing one. */
const PART = /[()]\s*(?:insert\s+into|delete\s+from|merge\s+into|update\b.*?\bset)\b/is;

/** Whether SQL writes: by its first word, under EXPLAIN ANALYZE, or in WITH. A function that writes is not recognized. */
export function writesBySql(sql: string): boolean {
  return withoutNoise(sql).split(';').some(writes);
}

function writes(statement: string): boolean {
  const [explains, options, words] = EXPLAINS.exec(statement) ?? [];
  if (explains !== undefined) return RUNS.test(options ?? words ?? '') && writes(statement.slice(explains.length));
  return BEGINS.test(statement) || (WITH.test(statement) && PART.test(statement));
}
