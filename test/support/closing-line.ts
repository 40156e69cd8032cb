import type { Reporter, TestModule } from 'vitest/node';

/** The last line of a run, for whoever reads its output by machine: `Tests: N passed, N failed, N skipped`. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    for (const module of modules) {
      // A file that could not even be loaded has no tests, and is a failure.
      if (module.state() === 'failed' && [...module.children.allTests()].length === 0) count.failed++;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state !== 'pending') count[state]++;
      }
    }
    const line = `Tests: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`;
    // After the summary of the default reporter.
    process.on('exit', () => process.stdout.write(`\n${line}\n`));
  }
}
