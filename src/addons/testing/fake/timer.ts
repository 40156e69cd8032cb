/**
 * Calls `action` after `ms`, by the timers that are there when it is called: fake timers of a test runner move a fake lock.
 * The real locks keep those that were there at import. Returns what stops it.
 *
 * The timer keeps the process running, as that of a real lock does: nothing else may be left that a waiting test waits for,
 * and `node:test` cancels a test when the event loop is empty.
 */
export function startTimer(ms: number, action: () => void): () => void {
  const handle = globalThis.setTimeout(action, ms);
  return () => globalThis.clearTimeout(handle);
}
