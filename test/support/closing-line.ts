import type { Reporter, TestCase, TestModule } from 'vitest/node';

/**
 * The end of a run: what was skipped, and why, each reason once, and as the last line, for whoever reads the output by
 * machine, `Tests: N passed, N failed, N skipped`.
 */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    const skipped = new Map<string, TestCase[]>();
    for (const module of modules) {
      // A file that could not even be loaded has no tests, and is a failure.
      if (module.state() === 'failed' && [...module.children.allTests()].length === 0) count.failed++;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'pending') continue;
        count[state]++;
        if (state === 'skipped' && !leftOut(test))
          skipped.set(reason(test), [...(skipped.get(reason(test)) ?? []), test]);
      }
    }
    const lines = [...skipped].map(([reason, tests]) => line(reason, tests));
    lines.push(`Tests: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
    // After the summary of the default reporter.
    process.on('exit', () => process.stdout.write(`\n${lines.join('\n')}\n`));
  }
}

/** By `-t`, and not by the test itself. */
function leftOut({ project, fullName }: TestCase): boolean {
  return project.config.testNamePattern !== undefined && !project.config.testNamePattern.test(fullName);
}

function reason(test: TestCase): string {
  const result = test.result();
  return (result.state === 'skipped' ? result.note : undefined) ?? test.name;
}

/** Without a server, whole suites are skipped for one reason. */
function line(reason: string, tests: readonly TestCase[]): string {
  const [first] = tests;
  const files = new Set(tests.map(({ module }) => module.relativeModuleId));
  if (tests.length > 1) return `Skipped: ${tests.length} suites or tests in ${files.size} files: ${reason}`;
  return `Skipped: ${[...files].join()}: ${first?.fullName}${first?.name === reason ? '' : `: ${reason}`}`;
}
