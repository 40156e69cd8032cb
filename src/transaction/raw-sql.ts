/** Skips blanks, comments and empty statements before the first word. Block comments nest in Postgres. */
function beginOf(sql: string): string {
  let at = 0;
  for (;;) {
    const blank = /^[\s;(]+/.exec(sql.slice(at, at + 1_000))?.[0].length ?? 0;
    at += blank;
    if (sql.startsWith('--', at)) {
      // In Postgres, a carriage return alone ends a line comment.
      const length = sql.slice(at).search(/[\r\n]/);
      if (length < 0) return '';
      at += length;
    } else if (sql.startsWith('/*', at)) {
      at = blockCommentEnd(sql, at);
    } else if (blank === 0) {
      return sql.slice(at, at + 1_000);
    }
  }
}

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

/** Words that end the transaction or begin another one. Savepoints stay inside it. */
const CONTROL = /^(BEGIN|COMMIT|END|ABORT|START|ROLLBACK|PREPARE)\b/i;

/**
 * Returns the first word of a statement that is transaction control, `undefined` for any other. One statement is
 * enough: the extended protocol takes only one.
 */
export function transactionControl(sql: string): string | undefined {
  // Most statements are Prisma's own, which begin with one of these words.
  if (/^(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(sql)) return undefined;
  const text = beginOf(sql);
  const word = CONTROL.exec(text)?.[0].toUpperCase();
  if (word === 'ROLLBACK' && hasNext(text, /^(?:(?:WORK|TRANSACTION)\b)?/i, /^TO\b/i)) return undefined;
  if (word === 'PREPARE' && !hasNext(text, /^/, /^TRANSACTION\b/i)) return undefined;
  return word;
}

/** Whether the word after the first one, or after an optional second one, is the wanted one. */
function hasNext(text: string, optional: RegExp, wanted: RegExp): boolean {
  const second = beginOf(text.replace(/^\w+/, ''));
  return wanted.test(second) || wanted.test(beginOf(second.replace(optional, '')));
}
