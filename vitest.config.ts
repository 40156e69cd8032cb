import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

const TESTS = ['test/**/*.test.ts', 'examples/**/*.test.ts'];
const SLOW = '**/*.slow.test.ts';
const FAULTS = 'test/faults/**';
/** Measures times of the servers. */
const STALLS = 'test/faults/topologies/stalls.test.ts';
const INSTALL = 'test/install/**';
/** A project of its own, with tests for several runners: test/install/testing.test.ts runs them. */
const TESTED = 'examples/testing/**';

/**
 * Files about a process in which no lock, no socket and nobody who listens to the channels is left, or nothing was warned
 * of: functions of other files may go on for ever after an abort, with sockets and listeners of their own.
 */
const AT_REST = [
  'test/base/events.test.ts',
  'test/base/scope.test.ts',
  'test/support.test/fault-proxy.test.ts',
  'test/addons/board/live.test.ts',
  'test/addons/board/poller.test.ts',
  'test/addons/board/requests.test.ts',
  'test/addons/board/same-numbers.test.ts',
];
/** Files that replace a module or a global before the package is loaded: each needs modules of its own. */
const REPLACING = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((file) => join('test', file))
  .filter((file) => file.endsWith('.test.ts') && /\bvi\.(mock|hoisted)\(/.test(readFileSync(file, 'utf8')))
  .concat(AT_REST);

const common = {
  // Real servers, processes that are frozen, leases that have to run out: seconds are normal.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 25_000 } },
  pool: 'forks' as const,
  setupFiles: ['test/support/name-sessions.ts'],
};

/** More than there are cores: these files wait more than they compute. */
const sideBySide = { maxWorkers: 6, sequence: { groupOrder: 1 } };

export default defineConfig({
  test: {
    // Once for all projects: they share its servers.
    globalSetup: ['test/support/global-setup.ts'],
    // Of the root alone: the servers of a busy machine take some seconds to stop.
    teardownTimeout: 20_000,
    reporters: ['default', './test/support/closing-line.ts'],
    include: TESTS,
    projects: [
      {
        // The others share what a worker has loaded, which is half of their processor time.
        test: {
          ...common,
          ...sideBySide,
          name: 'quick',
          isolate: false,
          include: TESTS,
          exclude: [SLOW, FAULTS, INSTALL, TESTED, ...REPLACING],
        },
      },
      {
        test: {
          ...common,
          ...sideBySide,
          name: 'quick, own modules',
          include: REPLACING,
          exclude: [SLOW, FAULTS, INSTALL],
        },
      },
      {
        test: {
          ...common,
          name: 'slow',
          include: [SLOW],
          exclude: ['**/node_modules/**', FAULTS, INSTALL],
          // Their servers take most of the time to start, stop and fail.
          maxWorkers: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // Each has several servers and workers of its own, and needs most of one core.
        test: {
          ...common,
          name: 'faults',
          include: [`${FAULTS}/*.test.ts`],
          exclude: [STALLS],
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          ...common,
          name: 'faults, measured',
          include: [STALLS],
          maxWorkers: 1,
          sequence: { groupOrder: 4 },
        },
      },
      {
        test: {
          ...common,
          name: 'install',
          include: [`${INSTALL}/*.test.ts`],
          maxWorkers: 1,
          sequence: { groupOrder: 5 },
        },
      },
    ],
  },
});
