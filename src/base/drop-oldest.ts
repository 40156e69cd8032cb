/** Removes the entry that was inserted first. */
export function dropOldest<K>(from: Map<K, unknown> | Set<K>): void {
  for (const oldest of from.keys()) {
    from.delete(oldest);
    return;
  }
}
