/**
 * How many transactions that are not of a lock are open on fenced pools and adapters. On `globalThis`: another copy of
 * this package may have fenced the pool.
 */
const SLOT = Symbol.for('prisma-extension-fenced-lock.plain-transactions');
const slots = globalThis as { [SLOT]?: { open: number } };
slots[SLOT] ??= { open: 0 };
const plain = slots[SLOT];

/** Counts one until the returned function is called. */
export function plainTransactionBegun(): () => void {
  plain.open++;
  let isOpen = true;
  return () => {
    if (isOpen) plain.open--;
    isOpen = false;
  };
}

export function isPlainTransactionOpen(): boolean {
  return plain.open > 0;
}
