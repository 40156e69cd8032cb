/**
 * The value of this name, one for all copies of this package in the process: as ESM and as CommonJS, and from before a dev
 * server's reload.
 */
export function processWide<T extends object>(name: string, make: () => T): T {
  const slot = Symbol.for(`prisma-extension-fenced-lock.${name}`);
  const slots = globalThis as { [slot]?: T };
  slots[slot] ??= make();
  return slots[slot];
}
