/**
 * The last line of a test run, `N passed, N failed`, written when the process ends and so behind everything else.
 * Invariant: a run that is not wholly good says at least `1 failed`: a file that can't be loaded, a failed set-up, an
 * error outside any test, a test that never ended, a run without any test, a process that ends with another code.
 */
import type { Reporter, TestModule } from 'vitest/node';

interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export class LastLineReporter implements Reporter {
  private tally: Tally = { passed: 0, failed: 0, skipped: 0 };

  onInit(): void {
    process.once('exit', (code) => {
      const { passed, skipped } = this.tally;
      const failed = this.tally.failed || (code !== 0 || passed === 0 ? 1 : 0);
      if (failed > 0 && code === 0) process.exitCode = 1;
      process.stdout.write(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const all = modules.map(tallyOf);
    const sum = (part: keyof Tally) => all.reduce((total, each) => total + each[part], 0);
    this.tally = { passed: sum('passed'), failed: sum('failed') + unhandledErrors.length, skipped: sum('skipped') };
  }
}

/** A file that failed without a failed test (it couldn't be loaded, a hook threw) counts as one failure. */
function tallyOf(module: TestModule): Tally {
  const states = [...module.children.allTests()].map((test) => test.result().state);
  const count = (state: (typeof states)[number]) => states.filter((each) => each === state).length;
  const failed = count('failed') + count('pending');
  return {
    passed: count('passed'),
    failed: failed === 0 && module.state() !== 'passed' && module.state() !== 'skipped' ? 1 : failed,
    skipped: count('skipped'),
  };
}
