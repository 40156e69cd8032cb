import { type NotedRefusal, REFUSALS_KEPT, type Refusal } from '../base/refusal.js';

/**
 * The name of the list of refusals. `list` does not find it, because no hash tag follows the prefix. No application has it
 * by chance: the prefix may be one that other software uses, too.
 */
export function refusalsName(prefix: string): string {
  return `${prefix}fenced-lock-refusals`;
}

/** One line for each: JSON escapes the line ends that a key may have. */
export function linesOf(refusals: readonly Refusal[], process: string | undefined): string {
  return refusals.map((refusal) => JSON.stringify({ ...refusal, process })).join('\n');
}

/** What the server has kept. Entries that this package did not write are left out. */
export function refusalsIn([now, entries]: readonly unknown[]): readonly NotedRefusal[] {
  const found = (entries as readonly unknown[]).flatMap((entry) => {
    const [, at, json = ''] = /^(\d+) (.*)$/s.exec(String(entry)) ?? [];
    const refusal = refusalIn(json);
    // The server's clock may have been set back.
    const ago = Math.max(0, Number(now) - Number(at));
    return refusal === undefined || ago > REFUSALS_KEPT ? [] : [{ ...refusal, ago }];
  });
  // A client sends a command again after a reconnect, and the first time may have arrived.
  return [...new Map(found.map((refusal) => [refusal.id, refusal])).values()];
}

function refusalIn(json: string): Omit<NotedRefusal, 'ago'> | undefined {
  let parsed: Readonly<Record<string, unknown>> | null;
  try {
    parsed = JSON.parse(json);
  } catch {
    return undefined;
  }
  const { id, key, token, reason, fence, model, process } = parsed ?? {};
  if (![id, key, token, reason].every((part) => typeof part === 'string')) return undefined;
  return {
    ...({ id, key, token, reason } as Refusal),
    ...(typeof fence === 'string' && { fence }),
    ...(typeof model === 'string' && { model }),
    ...(typeof process === 'string' && { process }),
  };
}
