import type { Mutant } from './mutant.js';

export const CHANNELS: readonly Mutant[] = [
  {
    name: 'trace: the work of a function that hangs does not end',
    file: 'src/base/call-trace.ts',
    change: [['      this.#work?.fail(error);\n', '']],
    tests: ['test/otel/spans'],
    why: 'Its span would never be sent.',
  },
  {
    name: 'channels: the function runs outside of the context',
    file: 'src/base/channels.ts',
    change: [['if (around === undefined) return action();', 'return action();']],
    tests: ['test/otel/spans', 'test/base/channels'],
    why: 'Spans that the function makes would be beside the call.',
  },
  {
    name: 'channels: a subscriber that calls twice runs the function twice',
    file: 'src/base/channels.ts',
    change: [['if (done === undefined) done = outcomeOf(action);', 'done = outcomeOf(action);']],
    tests: ['test/base/channels'],
    why: 'A subscriber must not decide the fate of a transaction: COMMIT would be sent twice.',
  },
  {
    name: 'channels: a call that nobody lets in fails nowhere',
    file: 'src/base/call-trace.ts',
    change: [['      this.#wait?.fail(error);\n', '']],
    tests: ['test/call/published-calls', 'test/otel/metrics'],
    why: 'Callers would be counted as waiting for ever.',
  },
  {
    name: 'channels: "not now" is an error',
    file: 'src/base/call-trace.ts',
    change: [['if (isNotNow(this, error)) this.#whole.succeed();', 'if (false) this.#whole.succeed();']],
    tests: ['test/call/published-calls', 'test/otel'],
    why: 'It is an answer, and would be counted as a timeout.',
  },
  {
    name: 'channels: a handle that failed to register is held for ever',
    file: 'src/call/handle.ts',
    change: [['    leases.release();\n    trace?.released();\n', '    leases.release();\n']],
    tests: ['test/call/published-calls'],
    why: 'Its keys would be counted as held.',
  },
  {
    name: 'channels: a turn from another process counts as a free key',
    file: 'src/lease/queue/acquire-loop.ts',
    change: [['lease.wasElsewhere = this.#isElsewhere;', 'lease.wasElsewhere = false;']],
    tests: ['test/call/published-calls', 'test/otel/metrics'],
    why: 'Turns handed over between processes are to be countable.',
  },
  {
    name: 'history: the turn that Postgres remembers is what the process believed',
    file: 'src/call/history.ts',
    change: [["inPostgres: true, outcome: 'committed' };", 'inPostgres: true, outcome: base.outcome };']],
    tests: ['test/call/history'],
    why: 'What Postgres remembers has committed, whatever the process could find out.',
  },
  {
    name: 'top: any key of the keyboard is a yes',
    file: 'src/cli/top/state.ts',
    change: [["(sequence !== 'y' && sequence !== 'Y')", 'false']],
    tests: ['test/cli/top/state'],
    why: 'A transaction would be rolled back that nobody meant.',
  },
  {
    name: 'top: the terminal stays as it was taken',
    file: 'src/cli/top/terminal.ts',
    change: [['    this.#output.write(LEAVE);\n', '']],
    tests: ['test/cli/top/live.slow'],
    why: 'The shell would have no cursor.',
  },
];
