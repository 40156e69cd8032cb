/** An error that the user can fix, shown as one sentence without a stack. Exit code 1. */
export class Problem extends Error {
  override readonly name: string = 'Problem';
  /** What to do, as a sentence of its own. */
  readonly remedy: string | undefined;

  constructor(message: string, { remedy, ...options }: ErrorOptions & { readonly remedy?: string | undefined } = {}) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** A wrong command line. Exit code 2. */
export class Misuse extends Problem {
  override readonly name = 'Misuse';
}

/**
 * The message of an error, without its last full stop: the sentence that quotes it has one of its own. If a connection was
 * refused at several addresses, only the parts of the error have messages.
 */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  const message = error instanceof Error ? error.message : String(error);
  return message.trimEnd().replace(/(?<!\.)\.$/, '');
}

/** The message of an error with what to do, if it says so. */
export function advised(error: unknown): string {
  const { message, remedy } = error instanceof Problem ? error : new Problem(`Unexpected: ${messageOf(error)}.`);
  return remedy === undefined ? message : `${message.replace(/\.?$/, '.')} ${remedy}`;
}

/** The code of a system or database error, such as `ENOENT` or `42501`. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
