import { processWide } from './process-wide.js';

/**
 * How many transactions that are not of a lock are open on fenced pools and adapters. Another copy of this package may
 * have fenced the pool.
 */
const plain = processWide('plain-transactions', () => ({ open: 0 }));

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
