import { expect, test } from "vitest";
import { BrowserError, type BrowserPort } from "../src/platform/port.js";
import { discreet } from "../src/platform/private.js";
import { FakeBrowser } from "./fake/browser.js";

/** A browser with one window and a private one, each with a tab in a group. */
async function make() {
  const browser = new FakeBrowser("https://a.test/");
  const hidden = browser.addWindow();
  const tab = browser.addTab("https://private.test/", hidden, { private: true });
  for (const window of browser.windowList) {
    window.private = window.id === hidden;
  }
  const group = await browser.tabs.group([tab.id], { windowId: hidden });
  const own = browser.tabList.find((each) => !each.private)?.id ?? 0;
  const state = { open: false };
  const seen: BrowserPort = discreet(browser, async () => state.open);
  const open = browser.windowList.find((window) => !window.private)?.id ?? 0;
  return { browser, seen, hidden, open, tab: tab.id, group, own, state };
}

const refused = (run: Promise<unknown>) =>
  run.then(
    () => "done",
    (error: unknown) => (error instanceof BrowserError ? error.kind : String(error)),
  );

test("private windows, their tabs and groups are not seen, and nothing is done to them by their ids", async () => {
  const { browser, seen, hidden, open, tab, group, own } = await make();
  expect((await seen.tabs.list()).map(({ id }) => id)).toEqual([own]);
  expect(await seen.tabs.list(hidden)).toEqual([]);
  expect(await seen.tabs.get(tab)).toBeUndefined();
  expect((await seen.windows.list()).map(({ id }) => id)).toEqual([open]);
  expect(await seen.windows.lastFocused()).toBeUndefined();
  expect(await seen.groups.list()).toEqual([]);
  const before = JSON.stringify([browser.tabList, browser.windowList, browser.groupList]);
  expect(
    await Promise.all(
      [
        seen.tabs.create({ url: "https://b.test/", windowId: hidden, active: false }),
        seen.tabs.update(tab, { muted: true }),
        seen.tabs.remove([own, tab]),
        seen.tabs.move(tab, { windowId: open, index: 0 }),
        seen.tabs.move(own, { windowId: hidden, index: 0 }),
        seen.tabs.reload(tab, false),
        seen.tabs.group([own, tab], { windowId: open }),
        seen.tabs.group([own], { groupId: group }),
        seen.tabs.group([own], { windowId: hidden }),
        seen.tabs.ungroup([tab]),
        seen.windows.focus(hidden),
        seen.groups.update(group, { title: "Mine" }),
      ].map(refused),
    ),
  ).toEqual([
    "noWindow",
    "noTab",
    "noTab",
    "noTab",
    "noWindow",
    "noTab",
    "noTab",
    "noGroup",
    "noWindow",
    "noTab",
    "noWindow",
    "noGroup",
  ]);
  expect(JSON.stringify([browser.tabList, browser.windowList, browser.groupList])).toBe(before);
});

test("what the person allows is seen and can be acted on; what is not private always", async () => {
  const { seen, hidden, tab, group, own, state } = await make();
  await seen.tabs.update(own, { muted: true });
  expect((await seen.tabs.get(own))?.muted).toBe(true);
  state.open = true;
  expect((await seen.tabs.get(tab))?.private).toBe(true);
  expect((await seen.windows.list()).find(({ id }) => id === hidden)?.private).toBe(true);
  expect((await seen.groups.list()).map(({ id }) => id)).toEqual([group]);
  await seen.groups.update(group, { title: "Mine" });
  await seen.tabs.remove([tab]);
  expect(await seen.tabs.get(tab)).toBeUndefined();
});
