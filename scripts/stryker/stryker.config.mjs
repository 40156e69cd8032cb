import { readFileSync } from 'node:fs';

/** The lines of a file from one function to the end of another one. */
function functions(file, first, last) {
  const lines = readFileSync(file, 'utf8').split('\n');
  const lineOf = (name) => lines.findIndex((line) => line.includes(`function ${name}(`));
  const [begin, end] = [lineOf(first), lines.indexOf('}', lineOf(last))];
  if (begin < 0 || lineOf(last) < begin) throw new Error(`${file} has no functions ${first} to ${last}.`);
  return `${file}:${begin + 1}-${end + 1}`;
}

export default {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'scripts/stryker/vitest.config.ts' },
  mutate: [
    functions('src/transaction/gate.ts', 'refusedCommand', 'refusedCommand'),
    'src/base/sql-text.ts',
    functions('src/transaction/commit.ts', 'judge', 'judgeByHistory'),
    'src/redis/names.ts',
    'src/redis/topology/slot.ts',
    'src/stores/memory.ts',
  ],
  mutator: { excludedMutations: ['StringLiteral'] },
  ignoreStatic: true,
  concurrency: 2,
  timeoutMS: 1000,
  reporters: ['clear-text'],
  tempDirName: '.stryker',
  thresholds: { break: 99.5 },
};
