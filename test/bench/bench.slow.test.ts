import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { bareTransaction, withLockAlone } from '../../bench/contestants/index.js';
import { write } from '../../bench/report/write.js';
import { bench } from '../../bench/run.js';
import { hotKey } from '../../bench/scenarios/hot-key.js';
import { SCENARIOS } from '../../bench/scenarios/index.js';
import { describeWithShop } from '../support/shop.js';

describeWithShop('the benchmark', () => {
  test('counts the updates that a contestant loses, and writes a report that needs no other file', async () => {
    const said: string[] = [];
    const options = {
      scenarios: [hotKey],
      contestants: [bareTransaction, withLockAlone],
      quick: true,
      seed: 1,
      warmUp: 3,
    };
    const report = await bench(options, (text) => said.push(text));

    const [result] = report.scenarios;
    expect(result?.error).toBeUndefined();
    const crowded = result?.tables.at(-1)?.rows ?? [];
    expect(crowded.map((row) => row['contestant'])).toEqual([bareTransaction.name, withLockAlone.name]);
    const [bare, locked] = crowded.map((row) => row['lost updates']);
    expect(bare).toBeGreaterThan(0);
    expect(locked).toBe(0);
    expect(said.join('\n')).toContain(withLockAlone.name);

    const directory = mkdtempSync(join(tmpdir(), 'bench-report-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const [json, html] = write(report, directory).map((file) => readFileSync(file, 'utf8'));
    expect(JSON.parse(json ?? '').scenarios[0].tables).toHaveLength(result?.tables.length ?? 0);
    expect(html?.match(/<svg/g)).toHaveLength(result?.tables.length ?? 0);
    expect(html).not.toMatch(/<(script|link|img)\b/);
  });

  // They speak to Postgres and Redis past the client, so no type tells when they have fallen behind it.
  test.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
    'runs %s to its end',
    async (_, scenario) => {
      const options = { scenarios: [scenario], contestants: [withLockAlone], quick: true, seed: 1, warmUp: 3 };
      const { scenarios } = await bench(options, () => {});
      expect(scenarios.map(({ error }) => error)).toEqual([undefined]);
      expect(scenarios[0]?.tables.flatMap(({ rows }) => rows)).not.toEqual([]);
    },
    120_000,
  );
});
