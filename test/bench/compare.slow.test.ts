import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { compare } from '../../bench/compare/compare.js';
import { FAULTS, processFrozen, schedule } from '../../bench/compare/faults.js';
import { exitCode, write } from '../../bench/compare/report.js';
import { bareTransaction, withLockAlone } from '../../bench/contestants/index.js';
import { Stage } from '../../bench/servers.js';
import { startAll } from '../support/servers/index.js';
import { describeWithGroup } from '../support/site-suite.js';

test('the comparison has the same faults for the same seed, and each equally often', () => {
  const strikes = schedule(7, 60);
  expect(schedule(7, 60)).toEqual(strikes);
  expect(schedule(8, 60)).not.toEqual(strikes);
  const names = strikes.slice(0, 2 * FAULTS.length).map(({ fault }) => fault.name);
  for (const { name } of FAULTS) expect(names.filter((one) => one === name)).toHaveLength(2);
});

const startStage = () => Stage.start(async () => (await startAll(1))[0]);

describeWithGroup('the comparison', startStage, (stage) => {
  test('counts what a transaction without a lock loses when a process is frozen, and nothing of $withLock', async () => {
    const strikes = [{ at: 1_000, fault: processFrozen, place: 1 }];
    const terms = { seconds: 3, strikes };
    const bare = await compare(stage(), bareTransaction, terms);
    expect(bare.struck).toEqual([processFrozen.name]);
    expect(bare.lost[processFrozen.name]).toBeGreaterThan(0);

    const locked = await compare(stage(), withLockAlone, terms);
    expect(locked.struck).toEqual([processFrozen.name]);
    expect(locked.sales).toBeGreaterThan(0);
    expect(locked).toMatchObject({ wrong: [], unanswered: 0, died: [] });
    expect(Object.values(locked.lost).filter((lost) => lost !== 0)).toEqual([]);
    expect(exitCode([bare, locked])).toBe(0);
    expect(exitCode([{ ...locked, wrong: ['sold, without an order'] }])).toBe(1);

    const directory = mkdtempSync(join(tmpdir(), 'comparison-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const page = join(directory, 'page.md');
    writeFileSync(page, 'before\n<!-- made by npm run compare -->\nthe last one\n<!-- end -->\nbehind\n');
    const comparison = { ...terms, outcomes: [bare, locked], seed: 1, servers: stage().servers };
    for (const _ of [1, 2]) write(page, comparison);
    const text = readFileSync(page, 'utf8');
    expect(text).toMatch(/^before\n<!-- made by npm run compare -->\n\n\| [\s\S]*\.\n\n<!-- end -->\nbehind\n$/);
    expect(text).not.toContain('the last one');
    expect(text.match(/`\$withLock`/g)).toHaveLength(1);
  });
});
