import type { Commands } from './client.js';

/** A Lua script with the types of its border, made from the header lines of its file in lua/. */
export interface Script<Keys extends string[], Args extends string[], Reply> {
  readonly name: string;
  readonly keys: Keys['length'];
  readonly sha1: string;
  readonly lua: string;
  /** Only for the compiler: what the script takes and answers. */
  readonly border?: { keys: Keys; args: Args; reply: Reply };
}

/**
 * Runs a script by its hash; a server that has not seen it yet (or was restarted) is sent the text once, unless the
 * answer is not `wanted` any more: by then it would come behind the command that undoes it.
 */
export function run<Keys extends string[], Args extends string[], Reply>(
  redis: Commands,
  script: Script<Keys, Args, Reply>,
  keys: NoInfer<Keys>,
  args: NoInfer<Args>,
  wanted: () => boolean = () => true,
): Promise<Reply> {
  const reply = redis.evalsha(script.sha1, script.keys, ...keys, ...args).catch((error: unknown) => {
    if (!isUnknownScript(error) || !wanted()) throw error;
    return redis.eval(script.lua, script.keys, ...keys, ...args);
  });
  return reply as Promise<Reply>;
}

export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
