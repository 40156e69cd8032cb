/** Statements that would end or leave the transaction. Savepoints stay inside it. */
const FORBIDDEN: readonly RegExp[] = [
  /^(BEGIN|COMMIT|END|ABORT)\b/i,
  /^START\s+TRANSACTION\b/i,
  /^ROLLBACK\b(?!\s+((WORK|TRANSACTION)\s+)?TO\b)/i,
  /^PREPARE\s+TRANSACTION\b/i,
];

/**
 * The statement of `sql` that is transaction control, or `undefined`. Raw SQL without values goes out as a simple
 * query, which may hold several statements; behind a COMMIT the rest would run outside the lock.
 */
export function transactionControl(sql: string): string | undefined {
  return statements(sql).find((statement) => FORBIDDEN.some((pattern) => pattern.test(statement)));
}

/** The statements of a text, with comments left out and literals emptied. */
function statements(sql: string): string[] {
  let text = '';
  let at = 0;
  while (at < sql.length) {
    const end = literalEnd(sql, at);
    if (end === undefined) {
      text += sql[at];
      at++;
    } else {
      text += ' ';
      at = end;
    }
  }
  return text
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}

/** Where the comment, string, quoted name or dollar-quoted text that begins at `at` ends; `undefined` if none does. */
function literalEnd(sql: string, at: number): number | undefined {
  const rest = sql.slice(at, at + 2);
  if (rest === '--') return lineCommentEnd(sql, at);
  if (rest === '/*') return blockCommentEnd(sql, at);
  if (rest[0] === '"') return quotedEnd(sql, at, '"', false);
  if (rest[0] === "'") return quotedEnd(sql, at, "'", /[eE]/.test(sql[at - 1] ?? '') && !/\w/.test(sql[at - 2] ?? ''));
  if (rest[0] === '$' && !/[\w$]/.test(sql[at - 1] ?? '')) {
    const tag = /^\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/.exec(sql.slice(at, at + 66))?.[0];
    if (tag !== undefined) return endOr(sql, sql.indexOf(tag, at + tag.length), tag.length);
  }
  return undefined;
}

function endOr(sql: string, found: number, length: number): number {
  return found < 0 ? sql.length : found + length;
}

/** For Postgres a carriage return ends a line by itself. */
function lineCommentEnd(sql: string, start: number): number {
  const length = sql.slice(start).search(/[\r\n]/);
  return endOr(sql, length < 0 ? length : start + length, 1);
}

/** Postgres's block comments nest. */
function blockCommentEnd(sql: string, start: number): number {
  let depth = 0;
  for (let at = start; at < sql.length; at++) {
    const pair = sql.slice(at, at + 2);
    if (pair === '/*') depth++;
    else if (pair === '*/') depth--;
    else continue;
    at++;
    if (depth === 0) return at + 1;
  }
  return sql.length;
}

function quotedEnd(sql: string, start: number, quote: string, backslashEscapes: boolean): number {
  for (let at = start + 1; at < sql.length; at++) {
    if (backslashEscapes && sql[at] === '\\') at++;
    else if (sql[at] === quote) {
      if (sql[at + 1] !== quote) return at + 1;
      at++;
    }
  }
  return sql.length;
}
