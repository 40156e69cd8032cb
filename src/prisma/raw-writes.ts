/** What is no word of a statement: comments that hold no other one, strings, quoted names. */
const NOISE = /--[^\r\n]*|\/\*(?:(?!\/\*|\*\/).)*\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$.*?\$\1\$/gs;
const COMMENT = /\/\*(?:(?!\/\*|\*\/).)*\*\//gs;

const BEGINS = /^[\s(]*(?:insert|update|delete|merge|truncate|copy|call|do)\b/i;
const EXPLAINS = /^[\s(]*explain\s*(?:\(([^)]*)\)|((?:(?:analyze|analyse|verbose)\b\s*)+))/i;
const RUNS = /\banaly[zs]e\b(?!\s*(?:false|off|no|0)\b)/i;
const WITH = /^[\s(]*with\b/i;
/** A part of WITH begins behind a parenthesis that opens, the statement itself behind one that closes. */
const PART = /[()]\s*(?:insert\s+into|delete\s+from|merge\s+into|update\b.*?\bset)\b/is;

/** Whether raw SQL says that it writes: by its first word, under EXPLAIN ANALYZE, or in WITH. Functions do not say. */
export function saysThatItWrites(sql: string): boolean {
  let text = sql.replaceAll(NOISE, ' ');
  // Block comments nest: each round leaves those out that hold no other one.
  for (let longer = ''; longer !== text; ) {
    longer = text;
    text = text.replaceAll(COMMENT, ' ');
  }
  return text.split(';').some(writes);
}

function writes(statement: string): boolean {
  const [explains, options, words] = EXPLAINS.exec(statement) ?? [];
  if (explains !== undefined) return RUNS.test(options ?? words ?? '') && writes(statement.slice(explains.length));
  return BEGINS.test(statement) || (WITH.test(statement) && PART.test(statement));
}
