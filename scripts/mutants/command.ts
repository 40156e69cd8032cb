import type { Mutant } from './mutant.js';

export const COMMAND: readonly Mutant[] = [
  {
    name: 'command: ls without keys asks Postgres nothing',
    file: 'src/cli/commands/ls.ts',
    change: [['sorted.length === 0 ? await hindrance(database) : undefined', 'undefined']],
    tests: ['test/cli/ls'],
    only: 'without keys says what keeps the database',
    why: 'Before the first migration it would say no more than that no key is held.',
  },
  {
    name: 'command: the config is not asked for Redis',
    file: 'src/cli/servers/urls.ts',
    change: [["(await configuredVariable(context, 'REDIS_URL', options)) ?? ''", "''"]],
    tests: ['test/cli/env-file'],
    why: 'Whether a .env is found must not depend on which other URL is given.',
  },
  {
    name: 'command: unlock trusts that a key without a row is free',
    file: 'src/cli/locks/raise-token.ts',
    change: [['writers?.some === false && ', '']],
    tests: ['test/cli/unlock'],
    only: 'first transaction, whose lease Redis has lost',
    why: 'Nobody sees the row of the first transaction of a key before it has committed.',
  },
  {
    name: 'command: unlock rolls back although it has ended a transaction',
    file: 'src/cli/locks/raise-token.ts',
    change: [['ended.size === 0 && ', '']],
    tests: ['test/cli/unlock'],
    only: 'first transaction, whose lease Redis has lost',
    why: 'It would say that the key was not held.',
  },
  {
    name: 'command: unlock does not say that a server seems to be another one',
    file: 'src/cli/commands/unlock.ts',
    change: [['const warning = mismatch(before, later, token, leaseTaken);', 'const warning = undefined;']],
    tests: ['test/cli/asked'],
    only: 'than that of the application',
    why: 'With the URLs of two environments it ends a transaction in the one and leaves the lease in the other.',
  },
  {
    name: 'command: a server is named with its user',
    file: 'src/cli/servers/both.ts',
    change: [
      ['askedOf({ at: database.place, place }, { at: redis', 'askedOf({ at: database.shown, place }, { at: redis'],
    ],
    tests: ['test/cli/asked'],
    only: 'are named first',
    why: 'The output of an operator is passed on.',
  },
];
