import { defineConfig } from "vitest/config";

const second = 1000;

export default defineConfig({
  test: {
    reporters: ["default", "./e2e/harness/again.ts"],
    projects: [
      { test: { name: "unit", include: ["test/**/*.test.{ts,tsx}"], testTimeout: 60 * second } },
      {
        test: {
          name: "e2e",
          include: ["e2e/**/*.test.ts"],
          globalSetup: ["e2e/harness/setup.ts"],
          // One browser at a time: they share two cores.
          fileParallelism: false,
          // Bounds of what hangs, not of what is slow.
          testTimeout: 120 * second,
          hookTimeout: 240 * second,
          // Docs, decision 10: who looks for such tests says --retry=0.
          retry: 1,
        },
      },
    ],
  },
});
