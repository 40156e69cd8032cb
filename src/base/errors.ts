export * from './errors/error.js';
export * from './errors/lock-errors.js';
export * from './errors/thrown.js';
export * from './errors/transaction-errors.js';
export * from './errors/usage-errors.js';
