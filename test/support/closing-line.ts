import type { Reporter, TestCase, TestModule } from 'vitest/node';

/**
 * The end of a run: each test that was skipped, whose name says why, and as the last line, for whoever reads the output by
 * machine, `Tests: N passed, N failed, N skipped`.
 */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    const lines: string[] = [];
    for (const module of modules) {
      // A file that could not even be loaded has no tests, and is a failure.
      if (module.state() === 'failed' && [...module.children.allTests()].length === 0) count.failed++;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'pending') continue;
        count[state]++;
        if (state === 'skipped' && !leftOut(test)) lines.push(`Skipped: ${module.relativeModuleId}: ${reason(test)}`);
      }
    }
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
  const note = result.state === 'skipped' ? result.note : undefined;
  return note === undefined ? test.fullName : `${test.fullName}: ${note}`;
}
