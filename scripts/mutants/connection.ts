import type { Mutant } from './mutant.js';

const adapter = 'src/prisma/adapter.ts';
const connection = 'src/connection/pg-connection.ts';
const line = 'src/connection/pg-line.ts';
const other = 'src/connection/adapter-connection.ts';

export const CONNECTION: readonly Mutant[] = [
  {
    name: 'BEGIN is lost',
    file: connection,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a piece of the file
    change: [['text: `BEGIN${level}`', "text: 'SELECT 1'"]],
    tests: ['test/promises/g1-serial'],
    why: 'The work would run in autocommit, and its rollback roll back nothing.',
  },
  {
    name: 'statement before the admission',
    file: connection,
    change: [[', values: [] }, ...statements]', ", values: [] }, { text: 'SELECT 1', values: [] }, ...statements]"]],
    tests: ['test/fence/first-statement'],
    why: 'It takes the snapshot: under REPEATABLE READ one from before the wait.',
  },
  {
    name: 'isolation level is lost',
    file: connection,
    change: [["isolationLevel === undefined ? '' :", "isolationLevel !== '' ? '' :"]],
    tests: ['test/fence/writes/retries'],
    only: 'serialization failure',
    why: 'The work would read what its caller has ruled out.',
  },
  {
    name: 'the end of what was never begun is sent',
    file: connection,
    change: [
      ['if (this.#line === undefined || this.#answers.length === 0) return;', 'if (this.#line === undefined) return;'],
    ],
    tests: ['test/connection/plain'],
    only: 'sends nothing',
    why: 'A caller that has to wait would keep its connection for a round trip.',
  },
  {
    name: 'a transaction that its own SQL has ended goes on',
    file: connection,
    change: [["      if (line.status === 'I') this.conductor?.ended(result.command);\n", '']],
    tests: ['test/connection/plain'],
    only: 'nothing more is sent',
    why: 'What is sent after it would be committed at once, outside the lock.',
  },
  {
    name: 'chain: who waits for the pool waits for the key',
    file: connection,
    change: [['this.#line !== undefined && !this.#line.isWanted', 'this.#line !== undefined']],
    tests: ['test/calls/chain'],
    only: 'bystander',
    why: 'A hot key would keep the pool’s connection for as long as it is hot.',
  },
  {
    name: 'chain: a lost COMMIT keeps its connection',
    file: connection,
    change: [['const line = this.#line ?? this.#passed;', 'const line = this.#line;']],
    tests: ['test/calls/chain'],
    only: 'never answered',
    why: 'The next turn would wait for an answer that never comes.',
  },
  {
    name: 'given back inside a transaction',
    file: line,
    change: [["!this.#broken && (this.status === 'I' || this.status === undefined)", '!this.#broken']],
    tests: ['test/connection/line'],
    why: 'The pool’s next user would commit it.',
  },
  {
    name: 'given back before its answers',
    file: line,
    change: [
      ['    if (this.#inFlight === 0) this.#settle();\n  }\n\n  destroy', '    this.#settle();\n  }\n\n  destroy'],
    ],
    tests: ['test/connection/line'],
    only: 'not before',
    why: 'The pool’s next user would wait behind them, in whatever they leave.',
  },
  {
    name: 'several statements in one text',
    file: line,
    change: [["    config['queryMode'] = 'extended';\n", '']],
    tests: ['test/connection/line'],
    only: 'one statement at a time',
    why: 'A COMMIT that is not the first word would be let through.',
  },
  {
    name: 'what the work connects is the lock’s, too',
    file: 'src/connection/ticket.ts',
    change: [['return !this.#used && !this.#closed;', 'return true;']],
    tests: ['test/pg/factories'],
    only: 'stay their own',
    why: 'What the work does on other connections is none of the lock’s.',
  },
  {
    name: 'a transaction without a fence',
    file: 'src/prisma/transactions.ts',
    change: [['        if (!ticket.used) throw await notFenced(client, fencedBefore);\n', '']],
    tests: ['test/pg/factories'],
    only: 'without a fence',
    why: 'Nothing would hold its writes to the admission.',
  },
  {
    name: 'who began before the class was fenced is refused',
    file: 'src/prisma/transactions.ts',
    change: [['if (fencedClasses() > fencedBefore)', 'if (fencedClasses() < fencedBefore)']],
    tests: ['test/pg/factories'],
    only: 'for all who call at once',
    why: 'The first calls of a client that had connected would fail.',
  },
  {
    name: 'one adapter is fenced twice',
    file: adapter,
    change: [['  if (adapter[FENCED]) return;\n', '']],
    tests: ['test/pg/factories'],
    only: 'fenced once',
    why: 'The outer fence would wait for an admission that the inner one has had.',
  },
  {
    name: 'adapter: an aborted transaction commits',
    file: other,
    change: [['if (this.#failed && !', 'if (this.#over && !']],
    tests: ['test/pg/factories'],
    only: 'swallowed SQL error',
    why: 'Nothing tells the tag here, and its COMMIT is a ROLLBACK that reports success.',
  },
  {
    name: 'adapter: several statements in one text',
    file: other,
    change: [['if (args.length === 0 && /;\\s*\\S/.test(sql)) {', 'if (args.length < 0) {']],
    tests: ['test/pg/factories'],
    only: 'several statements',
    why: 'A COMMIT that is not the first word would be let through.',
  },
  {
    name: 'a connection that was reset is no disconnect',
    file: 'src/prisma/errors.ts',
    change: [["  if (code === 'ECONNRESET' || code === 'EPIPE') return true;\n", '']],
    tests: ['test/connection/reset'],
    why: 'Nothing was done, and the caller would be told of an error all the same.',
  },
];
