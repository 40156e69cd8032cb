import { withoutNoise } from '../base/sql-text.js';

const BEGINS = /^[\s(]*(?:insert|update|delete|merge|truncate|copy|call|do)\b/i;
const EXPLAINS = /^[\s(]*explain\s*(?:\(([^)]*)\)|((?:(?:analyze|analyse|verbose)\b\s*)+))/i;
const RUNS = /\banaly[zs]e\b(?!\s*(?:false|off|no|0)\b)/i;
const WITH = /^[\s(]*with\b/i;
/** In WITH, a part follows an opening parenthesis, and the main statement follows a closing one. */
const PART = /[()]\s*(?:insert\s+into|delete\s+from|merge\s+into|update\b.*?\bset)\b/is;

/**
 * Whether raw SQL writes: by its first word, under EXPLAIN ANALYZE, or in WITH. A function that writes is not
 * recognized.
 */
export function isRawWrite(sql: string): boolean {
  return withoutNoise(sql).split(';').some(writes);
}

function writes(statement: string): boolean {
  const [explains, options, words] = EXPLAINS.exec(statement) ?? [];
  if (explains !== undefined) return RUNS.test(options ?? words ?? '') && writes(statement.slice(explains.length));
  return BEGINS.test(statement) || (WITH.test(statement) && PART.test(statement));
}
