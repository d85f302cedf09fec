import { describe, expect, test } from "vitest";
import { browserCases, commandCases } from "./cases/index.js";
import { CommandStage, Stage } from "./cases/stage.js";
import { FakeWorld } from "./cases/world.js";

describe("the fake does what Chromium does", () => {
  test.each(browserCases)("$id: $title", async ({ run, expected }) => {
    const stage = new Stage(new FakeWorld());
    await stage.ready();
    expect(await run(stage)).toEqual(expected);
  });
});

describe("commands on the fake", () => {
  test.each(commandCases)("$id: $title", async ({ run, expected }) => {
    const stage = new CommandStage(new FakeWorld());
    await stage.ready();
    expect(await run(stage)).toEqual(expected);
  });
});

test.each([
  ["browser", browserCases],
  ["commands", commandCases],
])("no two cases of the %s have the same id", (_, cases) => {
  const ids = cases.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)]);
});
