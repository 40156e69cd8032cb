/**
 * A Lua script with the types of its keys, arguments and reply, generated from the header lines of its file in lua/.
 */
export interface Script<Keys extends string[], Args extends string[], Reply> {
  readonly name: string;
  readonly keys: Keys['length'];
  readonly sha1: string;
  readonly lua: string;
  /** Types only; has no value at run time. */
  readonly border?: { keys: Keys; args: Args; reply: Reply };
}

export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
