/**
 * Calls `action` after `ms`, by the timers that are there when it is called: fake timers of a test runner move a fake lock.
 * The real locks keep those that were there at import. Returns what stops it.
 */
export function startTimer(ms: number, action: () => void): () => void {
  const handle = globalThis.setTimeout(action, ms) as NodeJS.Timeout | number;
  // Fake timers give a number, or an object of their own.
  if (typeof handle === 'object') handle.unref?.();
  return () => globalThis.clearTimeout(handle);
}
