/** Removes the entry that was inserted first. */
export function dropOldest<K>(map: Map<K, unknown>): void {
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
