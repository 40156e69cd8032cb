import type { Mutant } from './mutant.js';

const EARLY = "if (isolation === 'read committed') process.nextTick(() => grant.early());";

export const CALLS: readonly Mutant[] = [
  {
    name: 'release before the COMMIT',
    file: 'src/with-lock.ts',
    change: [[EARLY, 'if (isolation) grant.leave();']],
    tests: ['test/promises/g3-outcome'],
    only: 'before the COMMIT',
    why: 'The lock is released only when the outcome is known.',
  },
  {
    name: 'early turn after any isolation',
    file: 'src/with-lock.ts',
    change: [[EARLY, 'if (isolation) process.nextTick(() => grant.early());']],
    tests: ['test/calls/early-turn'],
    why: 'An older snapshot would have to begin again.',
  },
  {
    name: 'early turn of any isolation',
    file: 'src/with-lock.ts',
    change: [
      ["isolationLevel === undefined || isolationLevel === 'ReadCommitted'", "isolationLevel !== ('' as string)"],
    ],
    tests: ['test/calls/early-turn'],
    why: 'Its snapshot would be from before the COMMIT that it waits for.',
  },
  {
    name: 'connection held while a look has no answer',
    file: 'src/with-lock.ts',
    change: [['    this.#timer = after(LOOK_TIME, () => this.discard());\n', '']],
    tests: ['test/promises/g4-waiting'],
    why: 'Those who wait would take the pool from those who work.',
  },
  {
    name: 'an answer that waits for the one before it, however long',
    file: 'src/with-lock.ts',
    change: [['await within(before, IN_ORDER_TIME)', 'await before']],
    tests: ['test/calls/in-order'],
    why: 'The COMMIT before may not be answered for long, and this result is known.',
  },
  {
    name: 'answers out of order',
    file: 'src/with-lock.ts',
    change: [['    if (before) await within(before, IN_ORDER_TIME);\n', '']],
    tests: ['test/calls/in-order'],
    why: 'Who asked first hears first.',
  },
  {
    name: 'keys in the order of UTF-16',
    file: 'src/arguments.ts',
    change: [['.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))', '.sort()']],
    tests: ['test/calls/several-keys'],
    why: 'All who want the same keys take them in one order.',
  },
  {
    name: 'keys in the order of the call',
    file: 'src/arguments.ts',
    change: [['.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))', '']],
    tests: ['test/calls/several-keys'],
    why: 'Two would wait for each other.',
  },
  {
    name: 'an inner call’s failure forgotten',
    file: 'src/join.ts',
    change: [['    if (this.#failure) {', '    if (this.#failure && this.#running < 0) {']],
    tests: ['test/promises/context'],
    why: 'What it had begun would stay half done.',
  },
  {
    name: 'an inner call still running',
    file: 'src/join.ts',
    change: [['    if (this.#running > 0) {', '    if (this.#running < 0) {']],
    tests: ['test/promises/context'],
    why: 'A part of it would be committed without the rest.',
  },
  {
    name: 'a lost handle never left',
    file: 'src/handle.ts',
    change: [['    void this.#last.then(() => this.#end());\n', '']],
    tests: ['test/calls/handles-lost'],
    why: 'The callers behind it would wait for ever.',
  },
  {
    name: 'a handle not registered for good',
    file: 'src/handle.ts',
    change: [['registered: { ...registered, durable: true }', 'registered: { ...registered }']],
    tests: ['test/calls/handles-lost'],
    only: 'not issued a second time',
    why: 'A crash would give a token out again that other systems have seen.',
  },
  {
    name: 'transactions of a handle at once',
    file: 'src/handle.ts',
    change: [
      ['within(unlessAborted(before, signal), waitTime)', 'within(unlessAborted(Promise.resolve(), signal), waitTime)'],
    ],
    tests: ['test/calls/handles'],
    only: 'one after the other',
    why: 'They would be admitted in any order.',
  },
  {
    name: 'resumed without a word to Redis',
    file: 'src/lease/waiting-room.ts',
    change: [
      ['        if (await this.#shared.store.transfer(claim, successor)) return sentAt;\n', '        return sentAt;\n'],
    ],
    tests: ['test/calls/handles-resumed'],
    why: 'The lease would end in the old name, and the handle know nothing of it.',
  },
  {
    name: 'turn begun in the async context of another caller',
    file: 'src/lease/caller.ts',
    change: [['this.runInAsyncScope(() => this.request.ahead?.open());', 'this.request.ahead?.open();']],
    tests: ['test/calls/async-context'],
    why: 'It would find a tenant, a trace or a lock there that is somebody else’s.',
  },
  {
    name: 'transaction of another client',
    file: 'src/prisma/transactions.ts',
    change: [['        if (!(HOOKED in tx)) throw anotherClient();\n', '']],
    tests: ['test/fence/another-client'],
    why: 'Its writes would go past the fence.',
  },
];
