import type { Mutant } from './mutant.js';

const tests = ['test/pg/client'];

export const PG: readonly Mutant[] = [
  {
    name: 'BEGIN with a Sync of its own',
    file: 'src/pg/with-begin.ts',
    change: [['wire.execute({});', 'wire.execute({}); (wire as unknown as { sync(): void }).sync();']],
    tests,
    why: 'A statement whose BEGIN failed would run outside a transaction.',
  },
  {
    name: 'the answer to BEGIN is taken for the admission',
    file: 'src/pg/with-begin.ts',
    change: [['if (this.#answered++ < this.#first.length) return;', 'this.#answered++;']],
    tests,
    why: 'The admission would answer with two results.',
  },
  {
    name: 'BEGIN is lost',
    file: 'src/pg/client.ts',
    change: [['send(new WithBegin(held,', 'send(new WithBegin(held.slice(1),']],
    tests,
    why: 'The work would run in autocommit, and its rollback roll back nothing.',
  },
  {
    name: 'BEGIN is kept back for everybody',
    file: 'src/pg/client.ts',
    change: [['if (!opening?.isOpen) return false;', 'if (!opening) return false;']],
    tests,
    why: 'What the work begins on other connections is none of the lock’s.',
  },
  {
    name: 'the end of what was never begun is sent',
    file: 'src/pg/client.ts',
    change: [['if (ENDS.test(text)) return Promise.resolve(NOTHING);', '']],
    tests,
    why: 'A caller that has to wait would keep its connection for a round trip, and begin a transaction to end it.',
  },
  {
    name: 'the isolation level is sent by itself',
    file: 'src/pg/client.ts',
    change: [['this.#held.push(text);\n    return true;', 'return false;']],
    tests,
    why: 'It would cost the round trip that BEGIN has been spared.',
  },
  {
    name: 'the connection of a try that failed is used on',
    file: 'src/pg/opening.ts',
    change: [['    this.#line = undefined;\n', '']],
    tests: ['test/pg/repeated'],
    why: 'The admission would land in the transaction of somebody else.',
  },
  {
    name: 'a connection that was reset is no disconnect',
    file: 'src/prisma/errors.ts',
    change: [["  if (code === 'ECONNRESET' || code === 'EPIPE') return true;\n", '']],
    tests,
    only: 'was reset',
    why: 'Nothing was done, and the caller would be told of an error all the same.',
  },
];
