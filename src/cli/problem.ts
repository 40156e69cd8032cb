/** What the user can mend, in a plain sentence: no stack is shown. The command ends with exit code 1. */
export class Problem extends Error {
  override readonly name: string = 'Problem';
}

/** The command line itself is wrong: exit code 2. */
export class Misuse extends Problem {
  override readonly name = 'Misuse';
}

/** The message of whatever was thrown; a connection refused on several addresses has one in its parts alone. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** The code of a system or database error, such as `ENOENT` or `42501`. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
