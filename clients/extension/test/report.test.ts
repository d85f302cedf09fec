import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { browserCases, commandCases } from "./cases/index.js";
import { report } from "./cases/report.js";

const file = fileURLToPath(new URL("../../../docs/browser-cases.md", import.meta.url));

test("docs/browser-cases.md is what the table says; UPDATE_CASES=1 writes it", () => {
  const wanted = report(browserCases, commandCases);
  if (process.env.UPDATE_CASES !== undefined) {
    writeFileSync(file, wanted);
  }
  expect(readFileSync(file, "utf8")).toBe(wanted);
});
