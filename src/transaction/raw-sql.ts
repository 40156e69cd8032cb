/** Blanks, comments and empty statements, which may stand before the first word. Block comments nest. */
function beginOf(sql: string): string {
  let at = 0;
  for (;;) {
    const blank = /^[\s;(]+/.exec(sql.slice(at, at + 1_000))?.[0].length ?? 0;
    at += blank;
    if (sql.startsWith('--', at)) {
      // For Postgres a carriage return ends a line by itself.
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

/** Words that end or leave the transaction, or begin another one. Savepoints stay inside it. */
const CONTROL = /^(BEGIN|COMMIT|END|ABORT|START|ROLLBACK|PREPARE)\b/i;

/**
 * The word by which a statement is transaction control, or `undefined`. The statement is one: the protocol that it goes
 * out by takes no other.
 */
export function transactionControl(sql: string): string | undefined {
  // What Prisma itself sends is told at once.
  if (/^(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(sql)) return undefined;
  const text = beginOf(sql);
  const word = CONTROL.exec(text)?.[0].toUpperCase();
  if (word === 'ROLLBACK' && hasNext(text, /^(?:(?:WORK|TRANSACTION)\b)?/i, /^TO\b/i)) return undefined;
  if (word === 'PREPARE' && !hasNext(text, /^/, /^TRANSACTION\b/i)) return undefined;
  return word;
}

/** Whether behind the first word, and one that may stand there, comes what is looked for. */
function hasNext(text: string, optional: RegExp, wanted: RegExp): boolean {
  const second = beginOf(text.replace(/^\w+/, ''));
  return wanted.test(second) || wanted.test(beginOf(second.replace(optional, '')));
}
