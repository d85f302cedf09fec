import { expect, test } from "vitest";
import { FakeBrowser } from "./fake/browser.js";
import { type Driver, type Ended, scenarios } from "./semantics.js";

async function ended(call: Promise<unknown>): Promise<Ended> {
  const done = call.then(
    () => "done" as const,
    () => "refused" as const,
  );
  return Promise.race([done, new Promise<Ended>((resolve) => setTimeout(() => resolve("pending"), 20))]);
}

function driver(): Driver {
  const browser = new FakeBrowser("https://first.test/");
  const { tabs } = browser;
  return {
    open: async (name, where) =>
      browser.addTab(`https://${name}.test/`, where === "window" ? browser.addWindow() : undefined).id,
    openGuarded: async (name) => browser.addTab(`https://${name}.test/`, undefined, { guarded: true }).id,
    tabs: async () => (await tabs.list()).map((tab) => ({ ...tab, grouped: tab.groupId !== undefined })),
    remove: (ids) => ended(tabs.remove(ids)),
    group: (ids, windowId) => ended(tabs.group(ids, { windowId })),
    pin: (id) => ended(tabs.update(id, { pinned: true })),
    moveTo: async (id, index) => (await tabs.move(id, { index })).index,
    discard: async (id) => browser.discard(id),
  };
}

test.each(scenarios)("$name", async ({ run, expected }) => {
  expect(await run(driver())).toEqual(expected);
});
