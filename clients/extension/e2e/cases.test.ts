/** The case table in a real Chromium: the same cases with the same expected values as on the fake. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { browserCases, commandCases } from "../test/cases/index.js";
import { CommandStage, Stage } from "../test/cases/stage.js";
import { Fixture } from "./harness/fixture.js";
import { ChromiumWorld } from "./harness/world.js";

let f: Fixture;
let world: ChromiumWorld;

beforeAll(async () => {
  f = await Fixture.start();
  world = await ChromiumWorld.start(f.browser, f.page, f.deviceId);
});

afterAll(async () => {
  await f?.stop();
});

beforeEach(async () => {
  await world.clean();
});

const headless = <T extends { readonly fakeOnly?: string }>(cases: readonly T[]) =>
  cases.filter(({ fakeOnly }) => fakeOnly === undefined);

describe("Chromium", () => {
  test.each(headless(browserCases))("$id: $title", async ({ run, expected }) => {
    const stage = new Stage(world);
    await stage.ready();
    expect(await run(stage)).toEqual(expected);
  });
});

describe("commands in Chromium", () => {
  test.each(headless(commandCases))("$id: $title", async ({ run, expected }) => {
    const stage = new CommandStage(world);
    await stage.ready();
    expect(await run(stage)).toEqual(expected);
  });
});

test("after all cases the server knows what the browser has", async () => {
  await f.inStep();
});
