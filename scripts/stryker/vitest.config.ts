import { defineConfig } from 'vitest/config';

/** The tests of what StrykerJS changes: they need no server, and so no global setup. */
export default defineConfig({
  test: {
    include: [
      'test/transaction/{outcome,raw-sql}.test.ts',
      'test/redis/names-in-redis.test.ts',
      'test/redis/topology/slot.test.ts',
      'test/stores/{memory,expiring-map}.test.ts',
    ],
  },
});
