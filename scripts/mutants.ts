// Changes lines that promises rest on, one at a time, in a copy of the tree, and runs the tests that should not let
// that pass: npx tsx scripts/mutants.ts [--list] [--unchanged] [part of a mutant's name, or of its file's…]
// --unchanged runs the same tests without the change: then all of them have to pass.
import { parseArgs } from 'node:util';
import pc from 'picocolors';
import { MUTANTS } from './mutants/list.js';
import { attempt, check } from './mutants/try.js';

const { values, positionals } = parseArgs({
  options: { list: { type: 'boolean', default: false }, unchanged: { type: 'boolean', default: false } },
  allowPositionals: true,
});

const chosen = MUTANTS.filter(
  ({ name, file }) => positionals.length === 0 || positionals.some((part) => `${name} ${file}`.includes(part)),
);
for (const mutant of MUTANTS) check(mutant);
if (new Set(MUTANTS.map(({ name }) => name)).size < MUTANTS.length) throw new Error('two mutants have the same name');

if (values.list) {
  for (const { name, file, tests, why } of chosen) console.log(`${name}\n  ${file}\n  ${why}\n  ${tests.join(', ')}`);
  console.log(`${chosen.length} mutants`);
  process.exit(0);
}

const began = performance.now();
const sets = new Map(chosen.map((mutant) => [JSON.stringify([mutant.tests, mutant.only]), mutant]));
const expected = values.unchanged ? ['survived'] : ['killed', 'timeout'];
let wrong = chosen.length === 0 ? 1 : 0;
const counts: Record<string, number> = {};
for (const mutant of values.unchanged ? sets.values() : chosen) {
  const { found, by, seconds } = await attempt(mutant, values.unchanged);
  const asExpected = expected.includes(found);
  if (!asExpected) wrong++;
  counts[found] = (counts[found] ?? 0) + 1;
  console.log(`${mutant.name}: ${asExpected ? pc.green(found) : pc.red(found)} (${seconds.toFixed(1)} s) ${by}`);
}
const sums = Object.entries(counts).map(([found, count]) => `${count} ${found}`);
const minutes = ((performance.now() - began) / 60_000).toFixed(1);
console.log(`${chosen.length} mutants: ${sums.join(', ')}, in ${minutes} min`);
process.exit(wrong === 0 ? 0 : 1);
