/** Tells of tests that passed only when they were tried again, so that none of them stays unseen. */
import type { Reporter, TestCase, TestModule } from "vitest/node";

export default class Again implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      for (const test of module.children.allTests("passed")) {
        if (test.diagnostic()?.flaky === true) {
          console.log(line(module, test));
        }
      }
    }
  }
}

function line(module: TestModule, test: TestCase): string {
  const errors = (test.result().errors ?? []).map(({ message, stacks = [] }) => {
    const at = stacks.find(({ file }) => file.includes("/e2e/"));
    return `  ${message}${at === undefined ? "" : `\n    at ${at.file.split("/e2e/").at(-1)}:${at.line}`}`;
  });
  return [
    `FLAKY ${module.relativeModuleId} > ${test.fullName}: it failed, and passed when tried again`,
    ...errors,
  ].join("\n");
}
