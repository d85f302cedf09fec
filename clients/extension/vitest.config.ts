import { defineConfig } from "vitest/config";

const second = 1000;

export default defineConfig({
  test: {
    reporters: ["default", "./e2e/harness/again.ts"],
    projects: [
      { test: { name: "unit", include: ["test/**/*.test.{ts,tsx}"] } },
      {
        test: {
          name: "e2e",
          include: ["e2e/**/*.test.ts"],
          globalSetup: ["e2e/harness/setup.ts"],
          // One browser at a time: they share two cores.
          fileParallelism: false,
          testTimeout: 60 * second,
          hookTimeout: 120 * second,
          // Docs, decision 10: who looks for such tests says --retry=0.
          retry: 1,
        },
      },
    ],
  },
});
