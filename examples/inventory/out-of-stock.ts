/** Thrown inside a lock it rolls the whole transaction back, and reaches the caller as it is. */
export class OutOfStockError extends Error {
  override readonly name = 'OutOfStockError';

  constructor(readonly stockId: number) {
    super(`There is not enough left of stock ${stockId}.`);
  }
}
