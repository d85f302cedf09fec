import { create } from "@bufbuild/protobuf";
import { Colour, ItemStatus, SavedTabSchema } from "@throwbar/es/pb/state";
import { expect, test } from "vitest";
import { FakeBrowser } from "./fake/browser.js";
import { bench, failure, groupId, run, short, tabId, windowId } from "./fake/context.js";
import { until } from "./fake/until.js";

const a = "https://a.test/";
const b = "https://b.test/";
const c = "https://c.test/";

function three() {
  const browser = new FakeBrowser(a, b, c);
  const ids = browser.tabList.map(({ id }) => id) as unknown as readonly [number, number, number];
  return { browser, ...bench(browser), ids };
}

test("openTab opens in the window that was in front last, and notes first which tabs have the address already", async () => {
  const { browser, context, notes } = three();
  const result = await run<"openTab">({ case: "openTab", value: { url: "b.test" } }, context);
  expect(result).toMatchObject({ url: b, tabId: tabId(browser.tabList[3]?.id ?? 0) });
  expect(browser.tabList[3]).toMatchObject({ url: b, active: true });
  expect(notes).toEqual([{ url: b, before: [browser.tabList[1]?.id] }]);
});

test("openTab opens a window where there is none, and refuses popups and windows that are gone", async () => {
  const { browser, context } = three();
  const popup = browser.addWindow("popup");
  browser.addTab(a, popup);
  expect(await failure({ case: "openTab", value: { url: a, windowId: windowId(popup) } }, context)).toBe("FAILED");
  expect(await failure({ case: "openTab", value: { url: a, windowId: windowId(1) } }, context)).toBe("NOT_FOUND");
  expect(await failure({ case: "openTab", value: { url: a, windowId: tabId(1) } }, context)).toBe("INVALID");
  const empty = new FakeBrowser();
  empty.windowList.length = 0;
  await run({ case: "openTab", value: { url: a } }, bench(empty).context);
  expect(empty.tabList.map(({ url }) => url)).toEqual([a]);
});

test.each(["javascript:alert(1)", "file:///x", "https://me:secret@a.test", "nonsense"])(
  "openTab refuses %s",
  async (url) => {
    const { browser, context, notes } = three();
    expect(await failure({ case: "openTab", value: { url } }, context)).toBe("REFUSED");
    expect(browser.tabList).toHaveLength(3);
    expect(notes).toEqual([]);
  },
);

test("a tab that comes up empty is no success", async () => {
  const { browser, context } = three();
  browser.tabs.create = async () => browser.addTab("");
  expect(await failure({ case: "openTab", value: { url: a } }, context)).toBe("FAILED");
});

test("navigateTab sends the tab there", async () => {
  const { browser, context, ids } = three();
  const result = await run<"navigateTab">(
    { case: "navigateTab", value: { tabId: tabId(ids[0]), url: "d.test/x" } },
    context,
  );
  expect(result.url).toBe("https://d.test/x");
  expect(browser.tab(ids[0]).url).toBe("https://d.test/x");
  expect(await failure({ case: "navigateTab", value: { tabId: tabId(1), url: a } }, context)).toBe("NOT_FOUND");
  expect(await failure({ case: "navigateTab", value: { tabId: tabId(ids[0]), url: "data:x" } }, context)).toBe(
    "REFUSED",
  );
});

test("activateTab shows the tab; the focus moves only when asked", async () => {
  const { browser, context, ids } = three();
  const other = browser.addWindow();
  browser.addTab(a, other);
  await run({ case: "activateTab", value: { tabId: tabId(ids[1]) } }, context);
  expect(browser.tab(ids[1]).active).toBe(true);
  expect(browser.windowList.find(({ focused }) => focused)?.id).toBe(other);
  await run({ case: "activateTab", value: { tabId: tabId(ids[1]), focusWindow: true } }, context);
  expect(browser.windowList.find(({ focused }) => focused)?.id).toBe(browser.tab(ids[1]).windowId);
});

test("pinTabs and muteTabs count what is so now", async () => {
  const { browser, context, ids } = three();
  browser.tab(ids[0]).pinned = true;
  const popup = browser.addTab(a, browser.addWindow("popup"));
  const tabIds = [ids[0], ids[1], popup.id, 1].map(tabId);
  const pinned = await run<"pinTabs">({ case: "pinTabs", value: { tabIds, pinned: true } }, context);
  expect(pinned.pinnedCount).toBe(2);
  expect(short(pinned.items)).toEqual([
    `${ids[0]} OK`,
    `${ids[1]} OK`,
    `${popup.id} UNSUPPORTED_WINDOW`,
    "1 NOT_FOUND",
  ]);
  const muted = await run<"muteTabs">({ case: "muteTabs", value: { tabIds, muted: true } }, context);
  expect(muted.mutedCount).toBe(3);
  expect(browser.tab(popup.id).muted).toBe(true);
});

test("a tab that a person drags is tried again, and BUSY in the end", async () => {
  const { browser, context, ids } = three();
  browser.busy = 2;
  const quick = await run<"muteTabs">({ case: "muteTabs", value: { tabIds: [tabId(ids[0])], muted: true } }, context);
  expect(quick.mutedCount).toBe(1);
  browser.busy = 100;
  const { context: hasty, timeUp } = bench(browser);
  const busy = run<"muteTabs">({ case: "muteTabs", value: { tabIds: [tabId(ids[1])], muted: true } }, hasty);
  await until(() => expect(browser.busy).toBeLessThan(100));
  timeUp();
  const { items } = await busy;
  expect(items[0]?.status).toBe(ItemStatus.BUSY);
  expect(browser.tab(ids[1]).muted).toBe(false);
});

test("reloadTabs counts what is loaded again, and not what gives no sign of it", async () => {
  const { browser, context, ids, timeUp } = three();
  browser.tab(ids[1]).guarded = true;
  const reloading = run<"reloadTabs">({ case: "reloadTabs", value: { tabIds: ids.map(tabId) } }, context);
  await browser.asked();
  await new Promise((resolve) => setTimeout(resolve, 0));
  timeUp();
  const result = await reloading;
  expect(short(result.items)).toEqual([`${ids[0]} OK`, `${ids[1]} BLOCKED_BY_PAGE`, `${ids[2]} OK`]);
  expect(result.reloadedCount).toBe(2);
});

test("groupTabs groups tabs of one window, and says why some are left out", async () => {
  const { browser, context, ids } = three();
  browser.tab(ids[0]).pinned = true;
  const tabIds = [...ids, 1].map(tabId);
  const result = await run<"groupTabs">(
    { case: "groupTabs", value: { tabIds, title: "work", colour: Colour.CYAN } },
    context,
  );
  expect(result.groupedCount).toBe(2);
  expect(result.groupId).toBe(groupId(browser.groupList[0]?.id ?? 0));
  expect(browser.groupList[0]).toMatchObject({ title: "work", colour: "cyan" });
  expect(short(result.items)).toEqual([`${ids[0]} SKIPPED`, `${ids[1]} OK`, `${ids[2]} OK`, "1 NOT_FOUND"]);
  expect(result.items[0]?.detail).toContain("pinned");
  expect(browser.tab(ids[0]).pinned).toBe(true);
});

test("groupTabs makes nothing of nothing, and nothing of tabs of two windows", async () => {
  const { browser, context, ids } = three();
  const none = await run<"groupTabs">({ case: "groupTabs", value: { tabIds: [tabId(1)] } }, context);
  expect(none).toMatchObject({ groupId: "", groupedCount: 0 });
  const other = browser.addTab(a, browser.addWindow());
  const before = structuredClone(browser.tabList);
  expect(await failure({ case: "groupTabs", value: { tabIds: [tabId(ids[0]), tabId(other.id)] } }, context)).toBe(
    "INVALID",
  );
  expect(browser.tabList).toEqual(before);
});

test("groupTabs goes on without a tab that closes meanwhile", async () => {
  const { browser, context, ids } = three();
  const list = browser.tabs.list;
  browser.tabs.group = ((real) => async (tabs, into) => {
    if (browser.tabList.some(({ id }) => id === ids[1])) {
      browser.vanish(ids[1]);
    }
    return real(tabs, into);
  })(browser.tabs.group);
  browser.tabs.list = list;
  const result = await run<"groupTabs">({ case: "groupTabs", value: { tabIds: ids.map(tabId) } }, context);
  expect(result.groupedCount).toBe(2);
  expect(short(result.items)).toEqual([`${ids[0]} OK`, `${ids[1]} NOT_FOUND`, `${ids[2]} OK`]);
});

test("ungroupTabs counts those that are in no group now", async () => {
  const { browser, context, ids } = three();
  await run({ case: "groupTabs", value: { tabIds: ids.slice(0, 2).map(tabId) } }, context);
  const result = await run<"ungroupTabs">({ case: "ungroupTabs", value: { tabIds: [...ids, 1].map(tabId) } }, context);
  expect(result.ungroupedCount).toBe(3);
  expect(browser.groupList).toEqual([]);
});

test.each([
  { move: [2, 0], index: 0, order: [c, a, b, "d", "e"] },
  { move: [0, 1], index: 3, order: [c, "d", "e", a, b] },
  { move: [4, 0], index: 2, order: [b, c, "e", a, "d"] },
  { move: [2, 0], index: 1, order: [b, c, a, "d", "e"] },
  { move: [0, 2], index: undefined, order: [b, "d", "e", a, c] },
  { move: [1], index: 99, order: [a, c, "d", "e", b] },
])("moveTabs $move to $index", async ({ move, index, order }) => {
  const browser = new FakeBrowser(a, b, c, "d", "e");
  const tabIds = move.map((at) => tabId(browser.tabList[at]?.id ?? 0));
  const value = { tabIds, ...(index === undefined ? {} : { index }) };
  const result = await run<"moveTabs">({ case: "moveTabs", value }, bench(browser).context);
  expect(result.movedCount).toBe(move.length);
  expect(browser.urls()).toEqual(order);
});

test("moveTabs into another window, past its pinned tabs, and not into a popup", async () => {
  const { browser, context, ids } = three();
  const other = browser.addWindow();
  browser.addTab("x", other, { pinned: true });
  browser.addTab("y", other);
  const value = { tabIds: [tabId(ids[1]), tabId(ids[0]), tabId(1)], windowId: windowId(other), index: 0 };
  const result = await run<"moveTabs">({ case: "moveTabs", value }, context);
  expect(browser.urls(other)).toEqual(["x", b, a, "y"]);
  expect(short(result.items)).toEqual([`${ids[1]} OK`, `${ids[0]} OK`, "1 NOT_FOUND"]);
  expect(result.items[0]?.detail).toContain("position 1");
  const popup = browser.addWindow("popup");
  const into = { tabIds: [tabId(ids[2])], windowId: windowId(popup) };
  expect(await failure({ case: "moveTabs", value: into }, context)).toBe("FAILED");
});

test("saveTabs saves what can be opened again, and closes only that", async () => {
  const { browser, context, ids, notes } = three();
  const own = browser.addTab("chrome://version/");
  const loading = browser.addTab("", undefined, { pendingUrl: "https://d.test/" });
  const tabIds = [ids[0], own.id, loading.id, 1].map(tabId);
  const kept = await run<"saveTabs">({ case: "saveTabs", value: { tabIds } }, context);
  expect(kept).toMatchObject({ savedCount: 2, closedCount: 0 });
  expect(browser.removals).toEqual([]);
  const result = await run<"saveTabs">({ case: "saveTabs", value: { tabIds, close: true } }, context);
  expect(result).toMatchObject({ savedCount: 2, closedCount: 2 });
  expect(short(result.items)).toEqual([`${ids[0]} OK`, `${own.id} REFUSED_URL`, `${loading.id} OK`, "1 NOT_FOUND"]);
  expect(browser.tabList.map(({ url }) => url)).toEqual([b, c, "chrome://version/"]);
  expect(notes).toHaveLength(1);
});

test("saveTabs says of a page that asks that it is saved and open", async () => {
  const { browser, context, ids, timeUp } = three();
  browser.tab(ids[1]).guarded = true;
  const saving = run<"saveTabs">(
    { case: "saveTabs", value: { tabIds: ids.slice(0, 2).map(tabId), close: true } },
    context,
  );
  await new Promise((resolve) => setTimeout(resolve, 0));
  timeUp();
  const result = await saving;
  expect(result).toMatchObject({ savedCount: 2, closedCount: 1 });
  expect(result.items[1]?.detail).toContain("still open");
});

test("restoreTabs brings place, pin, sound and group back, and says what it could not open", async () => {
  const browser = new FakeBrowser(a);
  const window = browser.windowList[0]?.id ?? 0;
  const saved = [
    { savedId: "s1", url: b, index: 2, groupTitle: "g", groupColour: Colour.PINK, groupId: groupId(7) },
    { savedId: "s2", url: c, index: 0, pinned: true },
    { savedId: "s3", url: "https://d.test/", index: 1, muted: true, groupTitle: "g", groupId: groupId(7) },
    { savedId: "s4", url: "chrome://version/" },
  ].map((tab) => create(SavedTabSchema, { ...tab, windowId: windowId(window) }));
  const { context, notes } = bench(browser, saved);
  const savedIds = ["s1", "s2", "s3", "s4", "s5", "s1"];
  const result = await run<"restoreTabs">({ case: "restoreTabs", value: { savedIds } }, context);
  expect(result.restoredCount).toBe(3);
  expect(result.items.map(({ id, status }) => `${id} ${ItemStatus[status]}`)).toEqual([
    "s1 OK",
    "s2 OK",
    "s3 OK",
    "s4 REFUSED_URL",
    "s5 NOT_FOUND",
  ]);
  const byUrl = new Map(browser.tabList.map((tab) => [tab.url, tab]));
  expect(result.items[0]?.newId).toBe(tabId(byUrl.get(b)?.id ?? 0));
  expect(byUrl.get(c)).toMatchObject({ pinned: true, index: 0 });
  expect(byUrl.get("https://d.test/")).toMatchObject({ muted: true });
  expect(byUrl.get(b)?.groupId).toBe(byUrl.get("https://d.test/")?.groupId);
  expect(browser.groupList).toMatchObject([{ title: "g" }]);
  expect(notes).toHaveLength(1);
});

test("restoreTabs puts tabs into the group they were in, if it is still there", async () => {
  const { browser, context, ids } = three();
  const made = await run<"groupTabs">({ case: "groupTabs", value: { tabIds: [tabId(ids[0])], title: "g" } }, context);
  const saved = [
    create(SavedTabSchema, { savedId: "s", url: "https://d.test/", groupId: made.groupId, groupTitle: "g" }),
  ];
  await run({ case: "restoreTabs", value: { savedIds: ["s"] } }, bench(browser, saved).context);
  expect(browser.groupList).toHaveLength(1);
  expect(
    browser.tabList
      .filter((tab) => tab.groupId !== undefined)
      .map(({ url }) => url)
      .sort(),
  ).toEqual([a, "https://d.test/"]);
});

test("getActiveTab leaves the id out when there is none", async () => {
  const { browser, context, ids } = three();
  browser.tab(ids[0]).active = false;
  expect((await run<"getActiveTab">({ case: "getActiveTab", value: {} }, context)).tabId).toBeUndefined();
  browser.tab(ids[2]).active = true;
  const result = await run<"getActiveTab">({ case: "getActiveTab", value: {} }, context);
  expect(result).toMatchObject({ tabId: tabId(ids[2]), url: c, title: `Title of ${c}` });
});

test.each(["x", "1043", "dev1_wboot-1", "dev1_tboot-x"])("%s as a tab's id refuses the whole command", async (id) => {
  const { browser, context, ids } = three();
  expect(await failure({ case: "closeTabs", value: { tabIds: [tabId(ids[0]), id] } }, context)).toBe("INVALID");
  expect(browser.removals).toEqual([]);
});
