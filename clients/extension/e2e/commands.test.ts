/** Each command, dispatched through the real server, does in the real browser what was asked. */
import { ErrorCode } from "@throwbar/es/pb/command";
import { Colour } from "@throwbar/es/pb/state";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Fixture, soon, statuses } from "./harness/fixture.js";

let f: Fixture;

const a = "http://a.test/";
const b = "http://b.test/";
const c = "http://c.test/";

beforeAll(async () => {
  f = await Fixture.start();
});

afterAll(async () => {
  await f?.stop();
});

beforeEach(async () => {
  await f.closeOthers();
});

const ids = (...urls: string[]) => Promise.all(urls.map((url) => f.idOf(url)));

test("queries equal the browser's real tabs, windows and groups", async () => {
  await f.open(a, b, c);
  const groupId = await f.page.evaluate(async () => {
    const tabs = (await chrome.tabs.query({})).filter((tab) => tab.url?.includes(".test/")).map((tab) => tab.id ?? 0);
    const group = await chrome.tabs.group({ tabIds: tabs.slice(0, 2) as [number, ...number[]] });
    await chrome.tabGroups.update(group, { title: "pair", color: "cyan" });
    await chrome.windows.create({ url: "http://other.test/", focused: false });
    return group;
  });
  await f.inStep();
  const groups = async () =>
    (await f.api.browser.listTabGroups({})).groups.map(({ title, colour }) => ({ title, colour }));
  await expect.poll(groups, soon).toEqual([{ title: "pair", colour: Colour.CYAN }]);
  const counts = async () => (await f.api.browser.listWindows({})).windows.map(({ tabCount }) => tabCount).sort();
  await expect.poll(counts, soon).toEqual([1, (await f.realTabs()).length - 1]);
  const inGroup = (await f.serverTabs()).filter((tab) => tab.groupId.endsWith(`-${groupId}`));
  expect(inGroup.map(({ url }) => url)).toEqual([a, b]);
  const { tabs } = await f.api.browser.searchTabs({ query: "page b.test" });
  expect(tabs.map(({ url }) => url)).toEqual([b]);
});

test("openTab opens one, in front or behind, and what it returns is in the list at once", async () => {
  await f.open(a);
  const result = await f.run<"openTab">({ case: "openTab", value: { url: "b.test/x", active: false } });
  expect(result.url).toBe("https://b.test/x");
  expect((await f.serverTabs()).map(({ tabId }) => tabId)).toContain(result.tabId);
  expect(await f.realTab(result.tabId)).toMatchObject({ active: false });
  const shown = await f.run<"openTab">({ case: "openTab", value: { url: c } });
  expect(await f.realTab(shown.tabId)).toMatchObject({ url: c, active: true });
  const windowId = (await f.serverTabs())[0]?.windowId ?? "";
  const there = await f.run<"openTab">({ case: "openTab", value: { url: b, windowId } });
  expect(await f.realTab(there.tabId)).toMatchObject({ url: b });
});

test.each(["javascript:alert(1)", "data:text/html,x", "chrome://version", "http://me:secret@a.test/", "nowhere"])(
  "openTab refuses %s",
  async (url) => {
    const before = (await f.realTabs()).length;
    expect(await f.fail({ case: "openTab", value: { url } })).toMatchObject({ code: ErrorCode.REFUSED });
    expect(await f.realTabs()).toHaveLength(before);
  },
);

test("closeTabs closes what there is, once, and says what there was not", async () => {
  await f.open(a, b, c);
  const [idA, idB, idC] = await ids(a, b, c);
  await f.page.evaluate(async (url) => {
    const [tab] = (await chrome.tabs.query({})).filter((each) => each.url === url);
    await chrome.tabs.remove(tab?.id ?? 0);
  }, b);
  const result = await f.run<"closeTabs">({ case: "closeTabs", value: { tabIds: [idA, idB, idC, idA] as string[] } });
  expect(result.closedCount).toBe(2);
  expect(statuses(result.items)).toEqual([`${idA} OK`, `${idB} NOT_FOUND`, `${idC} OK`]);
  expect((await f.realTabs()).filter(({ url }) => url.includes(".test/"))).toEqual([]);
});

test("closeTabsByUrl closes what matches and nothing else", async () => {
  await f.open("http://a.test/1", "http://a.test/2", b);
  const result = await f.run<"closeTabsByUrl">({ case: "closeTabsByUrl", value: { url: "http://a.test/*" } });
  expect(result).toMatchObject({ closed: true, closedCount: 2, reason: "" });
  expect((await f.realTabs()).map(({ url }) => url)).toContain(b);
  const again = await f.run<"closeTabsByUrl">({ case: "closeTabsByUrl", value: { url: "http://a.test/*" } });
  expect(again).toMatchObject({ closed: false, closedCount: 0, reason: "not_found" });
});

test("activateTab shows a tab, and gives the focus only when asked", async () => {
  await f.open(a, b);
  const [idA] = (await ids(a)) as [string];
  // A headless Chromium does not move the focus between its windows, so what is watched is whether it is told to.
  const worker = await f.browser.worker();
  await worker.evaluate(() => {
    const real = chrome.windows.update.bind(chrome.windows) as (
      id: number,
      change: object,
    ) => Promise<chrome.windows.Window>;
    const told: unknown[] = [];
    Object.assign(globalThis, { told });
    Object.assign(chrome.windows, {
      update: (id: number, change: object) => {
        told.push([id, change]);
        return real(id, change);
      },
    });
  });
  const told = () => worker.evaluate(() => (globalThis as unknown as { told: unknown[] }).told);
  expect(await f.run<"activateTab">({ case: "activateTab", value: { tabId: idA } })).toMatchObject({ activated: true });
  expect(await f.realTab(idA)).toMatchObject({ active: true });
  expect(await told()).toEqual([]);
  await f.run({ case: "activateTab", value: { tabId: idA, focusWindow: true } });
  expect(await told()).toEqual([[(await f.realTab(idA))?.windowId, { focused: true }]]);
});

test("navigateTab goes there", async () => {
  await f.open(a);
  const [idA] = await ids(a);
  const result = await f.run<"navigateTab">({
    case: "navigateTab",
    value: { tabId: idA as string, url: "http://b.test/there" },
  });
  expect(result.url).toBe("http://b.test/there");
  await expect.poll(async () => (await f.realTab(idA as string))?.url, soon).toBe("http://b.test/there");
});

test("reloadTabs loads again", async () => {
  await f.open(a);
  const [idA] = await ids(a);
  const before = f.pages.hits.get(a) ?? 0;
  const result = await f.run<"reloadTabs">({ case: "reloadTabs", value: { tabIds: [idA as string] } });
  expect(result.reloadedCount).toBe(1);
  await expect.poll(() => f.pages.hits.get(a), soon).toBe(before + 1);
});

test("reloadTabs loads a tab again whose page has crashed", async () => {
  const [page] = await f.open(a);
  const [idA] = (await ids(a)) as [string];
  const session = await f.browser.cdp(page as Page);
  const crashed = new Promise((resolve) => page?.once("crash", resolve));
  void session.send("Page.crash").catch(() => {});
  await crashed;
  const before = f.pages.hits.get(a) ?? 0;
  const result = await f.run<"reloadTabs">({ case: "reloadTabs", value: { tabIds: [idA] } });
  expect(statuses(result.items)).toEqual([`${idA} OK`]);
  await expect.poll(() => f.pages.hits.get(a), soon).toBe(before + 1);
});

test("an address that is a file, and one without a page, leave no tab that is called open", async () => {
  const before = (await f.realTabs()).length;
  for (const url of ["http://a.test/file", "http://a.test/nothing"]) {
    // It is called open where the browser has not said within a moment that no page comes: a busy one may be late.
    const failed = async () => {
      const { outcome } = await f.dispatch({ case: "openTab", value: { url } });
      if (outcome.case === "result") {
        await f.closeOthers();
      }
      return outcome.case === "error" ? outcome.value.code : undefined;
    };
    await expect.poll(failed, soon).toBe(ErrorCode.FAILED);
    await expect.poll(async () => (await f.realTabs()).length, soon).toBe(before);
  }
  await f.open(b);
  const [idB] = (await ids(b)) as [string];
  const stays = await f.fail({ case: "navigateTab", value: { tabId: idB, url: "http://a.test/nothing" } });
  expect(stays).toMatchObject({ code: ErrorCode.FAILED });
  expect(stays.message).toContain(b);
});

test("a tab that is sent to a server that is silent is not told to be there, and holds up no other command", async () => {
  await f.open(a, b);
  const [idA, idB] = (await ids(a, b)) as [string, string];
  let ended = false;
  const slow = f.fail({ case: "navigateTab", value: { tabId: idA, url: "http://a.test/silent" } }, 8).finally(() => {
    ended = true;
  });
  const quick = await f.run<"reloadTabs">({ case: "reloadTabs", value: { tabIds: [idB] } });
  const opened = await f.run<"openTab">({ case: "openTab", value: { url: "http://b.test/silent" } });
  expect(ended).toBe(false);
  expect(quick.reloadedCount).toBe(1);
  expect(await f.realTab(opened.tabId)).toMatchObject({ url: "http://b.test/silent" });
  expect(await slow).toMatchObject({ code: ErrorCode.INTERRUPTED });
  await f.run({ case: "closeTabs", value: { tabIds: [opened.tabId, idA] } });
});

test("pinTabs and muteTabs do, undo, and are content with what is so already", async () => {
  await f.open(a, b);
  const tabIds = (await ids(a, b)) as string[];
  for (const pinned of [true, true, false]) {
    expect(await f.run<"pinTabs">({ case: "pinTabs", value: { tabIds, pinned } })).toMatchObject({ pinnedCount: 2 });
    expect((await Promise.all(tabIds.map((id) => f.realTab(id)))).map((tab) => tab?.pinned)).toEqual([pinned, pinned]);
  }
  for (const muted of [true, true, false]) {
    expect(await f.run<"muteTabs">({ case: "muteTabs", value: { tabIds, muted } })).toMatchObject({ mutedCount: 2 });
    expect((await Promise.all(tabIds.map((id) => f.realTab(id)))).map((tab) => tab?.muted)).toEqual([muted, muted]);
  }
});

test("groupTabs makes a group, leaves pinned tabs alone, and ungroupTabs takes it apart", async () => {
  await f.open(a, b, c);
  const tabIds = (await ids(a, b, c)) as string[];
  await f.run({ case: "pinTabs", value: { tabIds: tabIds.slice(2), pinned: true } });
  const result = await f.run<"groupTabs">({
    case: "groupTabs",
    value: { tabIds, title: "work", colour: Colour.ORANGE },
  });
  expect(result.groupedCount).toBe(2);
  expect(result.items[2]?.detail).toContain("pinned");
  const [first, second, third] = await Promise.all(tabIds.map((id) => f.realTab(id)));
  expect(first?.groupId).toBe(second?.groupId);
  expect(result.groupId.endsWith(`-${first?.groupId}`)).toBe(true);
  expect(third).toMatchObject({ pinned: true, groupId: -1 });
  const groups = async () => (await f.api.browser.listTabGroups({})).groups;
  await expect.poll(groups, soon).toMatchObject([{ groupId: result.groupId, title: "work", colour: Colour.ORANGE }]);
  const apart = await f.run<"ungroupTabs">({ case: "ungroupTabs", value: { tabIds } });
  expect(apart.ungroupedCount).toBe(3);
  await expect.poll(groups, soon).toEqual([]);
});

test("groupTabs refuses tabs of different windows and changes nothing", async () => {
  await f.open(a);
  await f.page.evaluate(async () => chrome.windows.create({ url: "http://other.test/" }));
  await f.inStep();
  const tabIds = (await ids(a, "http://other.test/")) as string[];
  // A title may still come.
  const places = async () => (await f.realTabs()).map(({ title: _, ...tab }) => tab);
  const before = await places();
  expect(await f.fail({ case: "groupTabs", value: { tabIds } })).toMatchObject({ code: ErrorCode.INVALID });
  expect(await places()).toEqual(before);
});

test("moveTabs puts tabs in the order wanted, in their window and in another one", async () => {
  await f.open(a, b, c);
  const [idA, idB, idC] = (await ids(a, b, c)) as [string, string, string];
  const order = async () => (await f.realTabs()).filter(({ url }) => url.includes(".test/")).map(({ url }) => url);
  const start = (await f.realTab(idA))?.index ?? 0;
  const moved = await f.run<"moveTabs">({ case: "moveTabs", value: { tabIds: [idC, idA], index: start } });
  expect(moved.movedCount).toBe(2);
  expect(await order()).toEqual([c, a, b]);
  await f.run({ case: "moveTabs", value: { tabIds: [idC, idA], index: start + 1 } });
  expect(await order()).toEqual([b, c, a]);
  await f.run({ case: "moveTabs", value: { tabIds: [idC] } });
  expect(await order()).toEqual([b, a, c]);
  await f.page.evaluate(async () => chrome.windows.create({ url: "http://other.test/" }));
  await f.inStep();
  const windowId = (await f.serverTabs()).find(({ url }) => url === "http://other.test/")?.windowId ?? "";
  await f.run({ case: "moveTabs", value: { tabIds: [idB, idA], windowId, index: 0 } });
  const there = (await f.realTabs()).filter((tab) => windowId.endsWith(`-${tab.windowId}`)).map(({ url }) => url);
  expect(there).toEqual([b, a, "http://other.test/"]);
});

test("saveTabs with close, then restoreTabs: place, pin, sound and group come back", async () => {
  await f.open(a, b, c);
  const tabIds = (await ids(a, b, c)) as string[];
  const listed = async () => (await f.api.browser.listSavedTabs({})).savedTabs;
  const earlier = new Set((await listed()).map(({ savedId }) => savedId));
  const kept = async () => (await listed()).filter(({ savedId }) => !earlier.has(savedId));
  await f.run({ case: "pinTabs", value: { tabIds: tabIds.slice(0, 1), pinned: true } });
  await f.run({ case: "muteTabs", value: { tabIds: tabIds.slice(1, 2), muted: true } });
  await f.run({ case: "groupTabs", value: { tabIds: tabIds.slice(1), title: "reading", colour: Colour.PINK } });
  await f.inStep();
  const before = await f.realTabs();
  const outcome = await f.dispatch({ case: "saveTabs", value: { tabIds, close: true } });
  expect(outcome.outcome.value).toMatchObject({ kind: { value: { savedCount: 3, closedCount: 3 } } });
  expect((await f.realTabs()).filter(({ url }) => url.includes(".test/"))).toEqual([]);
  const savedTabs = await kept();
  expect(savedTabs.map(({ url }) => url).sort()).toEqual([a, b, c]);
  const savedIds = savedTabs.map(({ savedId }) => savedId);
  const restored = await f.run<"restoreTabs">({ case: "restoreTabs", value: { savedIds } });
  expect(restored.restoredCount).toBe(3);
  const shape = (tabs: typeof before) =>
    tabs.map(({ index, url, pinned, muted, groupId }) => ({ index, url, pinned, muted, grouped: groupId >= 0 }));
  await expect.poll(async () => shape(await f.realTabs()), soon).toEqual(shape(before));
  const groups = await f.page.evaluate(async () =>
    (await chrome.tabGroups.query({})).map(({ title, color }) => [title, color]),
  );
  expect(groups).toEqual([["reading", "pink"]]);
  expect(await kept()).toEqual([]);
});

test("closed tabs come back by undo", async () => {
  await f.open(a, b);
  const outcome = await f.dispatch({ case: "closeTabs", value: { tabIds: (await ids(a, b)) as string[] } });
  expect(outcome.savedIds).toHaveLength(2);
  const back = await f.run<"restoreTabs">({ case: "restoreTabs", value: { savedIds: outcome.savedIds } });
  expect(back.restoredCount).toBe(2);
  await expect
    .poll(async () => (await f.realTabs()).map(({ url }) => url), soon)
    .toEqual(expect.arrayContaining([a, b]));
});

test("getActiveTab names the tab in front", async () => {
  await f.open(a, b);
  const result = await f.run<"getActiveTab">({ case: "getActiveTab", value: {} });
  const front = await f.page.evaluate(
    async () => (await chrome.tabs.query({ active: true, lastFocusedWindow: true }))[0],
  );
  expect(result).toMatchObject({ url: front?.url, title: front?.title });
  expect(result.tabId?.endsWith(`-${front?.id}`)).toBe(true);
});

test("a tab that was put to sleep is found by its old id, and lists wake none", async () => {
  await f.open(a, b);
  const [idA] = (await ids(a)) as [string];
  await f.page.evaluate(async (url) => {
    const [tab] = (await chrome.tabs.query({})).filter((each) => each.url === url);
    await chrome.tabs.discard(tab?.id);
  }, a);
  await expect.poll(async () => (await f.serverTabs()).filter(({ discarded }) => discarded).length, soon).toBe(1);
  await f.inStep();
  expect((await f.realTabs()).filter(({ discarded }) => discarded)).toHaveLength(1);
  const result = await f.run<"closeTabs">({ case: "closeTabs", value: { tabIds: [idA] } });
  expect(result.closedCount).toBe(1);
  expect((await f.realTabs()).map(({ url }) => url)).not.toContain(a);
});

test("ids of an earlier start of the browser are not found", async () => {
  await f.open(a);
  const [idA] = (await ids(a)) as [string];
  const stale = idA.replace(/_t[a-z2-7]{4}-/, "_tzzzz-");
  expect(await f.fail({ case: "activateTab", value: { tabId: stale } })).toMatchObject({ code: ErrorCode.NOT_FOUND });
  const result = await f.run<"closeTabs">({ case: "closeTabs", value: { tabIds: [stale, idA] } });
  expect(statuses(result.items)).toEqual([`${stale} NOT_FOUND`, `${idA} OK`]);
});
