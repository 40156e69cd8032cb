/** Of this run; `FC_SEED` repeats one. */
export const seed = Number(process.env['FC_SEED'] ?? Date.now() % 2 ** 31);
