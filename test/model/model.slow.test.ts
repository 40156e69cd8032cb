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
    const places = new Set(intact.flatMap((verdict) => [...verdict.places]));
    // Not every run has every statement. The place of one in an inline may not be listed.
    const isDead = (statement: string) => {
      const [place = ''] = statement.split(' ');
      const having = intact.filter((verdict) => verdict.places.has(place) || !places.has(place));
      return having.every(({ unreached }) => unreached.includes(statement));
    };
    const dead = [...new Set(intact.flatMap(({ unreached }) => unreached))].filter(isDead);
    expect(intact.length).toBeGreaterThan(1);
    expect(places.size).toBeGreaterThan(0);
    expect(dead.filter((statement) => !/ (-end-|assert\(!.*\))$/.test(statement))).toEqual([]);
  });
});
