import { describe, expect, test } from 'vitest';
import { RUNS } from '../../scripts/model/runs.js';
import { check, spinUnavailable, type Verdict } from '../../scripts/model/spin.js';

const missing = await spinUnavailable();
const quick = RUNS.filter((run) => run.large !== true);

describe.each(['fence', 'handover'] as const)('the model %s', (model) => {
  if (missing !== undefined) {
    test.skip(missing, () => {});
    return;
  }
  const intact: Verdict[] = [];

  for (const run of quick.filter((each) => each.model === model)) {
    test(`${run.name}: ${run.expected}`, { timeout: 120_000 }, async () => {
      const verdict = await check(run);
      if (run.expected === 'holds') intact.push(verdict);
      expect(verdict.violated ?? 'holds', verdict.trace).toBe(run.expected);
    });
  }

  // What no execution comes to is not checked, however many states there are.
  test('has no statement that no run comes to, other than what must not happen', () => {
    const [first, ...others] = intact.map(({ unreached }) => unreached);
    const dead = first?.filter((statement) => others.every((unreached) => unreached.includes(statement)));
    expect(dead).toBeDefined();
    expect(dead?.filter((statement) => !/ (-end-|assert\(!.*\))$/.test(statement))).toEqual([]);
  });
});
