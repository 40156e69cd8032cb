// Checks the models in model/: npx tsx scripts/model.ts [--large] [--trace] [part of a run's name]
import { parseArgs } from 'node:util';
import pc from 'picocolors';
import { RUNS } from './model/runs.js';
import { check, spinUnavailable } from './model/spin.js';

const { values, positionals } = parseArgs({
  options: { large: { type: 'boolean', default: false }, trace: { type: 'boolean', default: false } },
  allowPositionals: true,
});

const missing = await spinUnavailable();
if (missing !== undefined) {
  console.error(missing);
  process.exit(2);
}

const part = positionals.join(' ');
const runs = RUNS.filter((run) => `${run.model}: ${run.name}`.includes(part) && (values.large || run.large !== true));
let wrong = runs.length === 0 ? 1 : 0;
for (const run of runs) {
  const { violated, states, seconds, trace } = await check(run);
  const found = violated ?? 'holds';
  const asExpected = found === run.expected;
  if (!asExpected) wrong++;
  const verdict = asExpected ? pc.green(found) : pc.red(`${found}, and not ${run.expected}`);
  console.log(`${run.model}: ${run.name}: ${verdict} (${states.toLocaleString('en')} states, ${seconds.toFixed(1)} s)`);
  if (trace !== '' && (values.trace || !asExpected)) console.log(trace);
}
console.log(`${runs.length} runs, ${wrong} not as expected`);
process.exit(wrong === 0 ? 0 : 1);
