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

test("what the server is told, lists and finds of tabs that are asleep wakes none of them", async () => {
  const stage = new Stage(world);
  await stage.ready();
  const ids = await Promise.all(["a", "b", "c", "d", "e"].map((name) => stage.open(name)));
  await Promise.all(ids.slice(1).map((id) => stage.sleep(id)));
  const before = await stage.view();
  expect(before.home?.filter((tab) => tab.endsWith("asleep"))).toHaveLength(4);
  await f.inStep();
  // The next worker reads everything and hands on all of it.
  await world.stopWorker();
  await stage.open("f");
  await f.inStep();
  const { tabs } = await f.api.browser.searchTabs({ query: "test", pageSize: 100 });
  expect(tabs.filter(({ discarded }) => discarded)).toHaveLength(4);
  expect((await f.serverTabs()).filter(({ discarded }) => discarded)).toHaveLength(4);
  expect(await stage.view()).toEqual({ home: [...(before.home ?? []), "f"] });
});

test("after all cases the server knows what the browser has", async () => {
  await f.inStep();
});
