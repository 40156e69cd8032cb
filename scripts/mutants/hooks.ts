import type { Mutant } from './mutant.js';

export const HOOKS: readonly Mutant[] = [
  {
    name: 'hooks: run before the release has left',
    file: 'src/call/hooks.ts',
    change: [['  await turnOfLoop();\n', '']],
    tests: ['test/call/after-commit'],
    only: 'blocks the event loop',
    why: 'A hook must not lengthen the lock.',
  },
  {
    name: 'hooks: an unknown outcome is told as a rollback',
    file: 'src/transaction/attempt.ts',
    change: [['const isUnknown = end.isUnknown || ', 'const isUnknown = ']],
    tests: ['test/call/after-commit'],
    only: 'onUnknown, with the error',
    why: 'It may have committed.',
  },
  {
    name: 'hooks: the outcome is read from the class of the error',
    file: 'src/transaction/attempt.ts',
    change: [['const isUnknown = end.isUnknown || ', 'const isUnknown = end.error instanceof CommitUnknownError || ']],
    tests: ['test/call/after-commit'],
    only: 'does not make this one unknown',
    why: 'The function may throw an error of another call.',
  },
  {
    name: 'hooks: a function that throws behind a COMMIT of its own counts as rolled back',
    file: 'src/transaction/attempt.ts',
    change: [['      if (this.admitted && connection.isOver) this.#ended ??= await this.#tagOfEnd();\n', '']],
    tests: ['test/call/after-commit'],
    only: 'the function throws: onUnknown',
    why: 'A part of it is committed.',
  },
  {
    name: 'hooks: those of a run that is repeated are forgotten',
    file: 'src/call/lock.ts',
    change: [['    this.#due ??= [];', '    this.#due = [];']],
    tests: ['test/call/after-commit'],
    only: 'was rolled back and repeated',
    why: 'Each run undoes what it has done outside.',
  },
  {
    name: 'hooks: an error of one that follows a rollback is thrown',
    file: 'src/call/lock.ts',
    change: [
      [
        'if (this.#due) await parts.hooks.run(this.#due, key, parts.emit);',
        'if (this.#due) throw (await parts.hooks.run(this.#due, key, undefined))[0];',
      ],
    ],
    tests: ['test/call/after-commit'],
    only: 'is an event in any case',
    why: 'It would be seen by nobody.',
  },
  {
    name: 'hooks: those of a handle keep its next transaction waiting',
    file: 'src/call/handle.ts',
    change: [
      [
        ': this.#run(before, fn, options, hooks, undefined);',
        ': hooks.runAfter(this.#run(before, fn, options, hooks, undefined));',
      ],
      ['return await hooks.runAfter(run);', 'return await run;'],
    ],
    tests: ['test/call/after-commit'],
    only: 'may begin the next one',
    why: 'A hook that begins one would wait for itself.',
  },
  {
    name: 'hooks: a client that is closed does not wait for them',
    file: 'src/assemble.ts',
    change: [['while (await hooks.idle()) await givenBack();', '']],
    tests: ['test/call/after-commit'],
    only: 'are waited for',
    why: 'A process that ends then would take them along.',
  },
  {
    name: 'hooks: what the function left behind registers one that never runs',
    file: 'src/call/lock.ts',
    change: [['if (this.#hasEnded) {', 'if (false) {']],
    tests: ['test/call/after-commit'],
    only: 'are refused when',
    why: 'It would be lost without a word.',
  },
];
