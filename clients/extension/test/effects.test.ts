/** What a command says that it changed beside what was asked, and what it does not take upon itself. */
import { expect, test } from "vitest";
import { type Before, type Done, readBefore, sideEffects } from "../src/commands/effects.js";
import { recoveries } from "../src/commands/handlers.js";
import type { TabInfo } from "../src/platform/port.js";
import { FakeBrowser } from "./fake/browser.js";
import { bench, failure, groupId, run, short, tabId, windowId } from "./fake/context.js";

const a = "https://a.test/";
const b = "https://b.test/";
const c = "https://c.test/";

interface TwoWindows {
  readonly browser: FakeBrowser;
  readonly home: number;
  readonly other: number;
  /** In home. */
  readonly first: number;
  /** In the other window. */
  readonly second: number;
  readonly third: number;
}

function twoWindows(): TwoWindows {
  const browser = new FakeBrowser(a);
  const second = browser.openWindow(b, "normal");
  const third = browser.addTab(c, second.windowId);
  const [first] = browser.tabList;
  if (first === undefined) {
    throw new Error("no tab");
  }
  return {
    browser,
    home: first.windowId,
    other: second.windowId,
    first: first.id,
    second: second.id,
    third: third.id,
  };
}

/** Reads before and after something that happens to tabs. */
async function effects(browser: FakeBrowser, ids: readonly number[], act: () => unknown, done: Partial<Done> = {}) {
  const { context } = bench(browser);
  const tabs = (await Promise.all(ids.map((id) => browser.tabs.get(id)))).filter((tab): tab is TabInfo => !!tab);
  // As it comes back from the journal.
  const before = JSON.parse(JSON.stringify(await readBefore(context, tabs))) as Before;
  await act();
  const { $typeName: _, ...found } = (await sideEffects(context, before, { tabs: ids, ...done })) ?? { $typeName: "" };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => !Array.isArray(value) || value.length > 0));
}

test("nothing changed is nothing said", async () => {
  const { browser, first, second } = twoWindows();
  expect(await effects(browser, [first, second], () => {})).toEqual({});
});

test("a window that a person closes meanwhile is theirs", async () => {
  const { browser, other, second, third } = twoWindows();
  expect(await effects(browser, [second], () => browser.closeWindow(other))).toEqual({});
  const again = twoWindows();
  // All of its tabs were to be moved, and one was not before the window closed.
  const did = { tabs: [again.second] };
  expect(
    await effects(again.browser, [again.second, again.third], () => again.browser.closeWindow(again.other), did),
  ).toEqual({});
  expect(third).toBeGreaterThan(0);
});

test("a window that was emptied is closed by the command", async () => {
  const { browser, home, other, second, third } = twoWindows();
  const act = async () => {
    for (const id of [second, third]) {
      await browser.tabs.move(id, { windowId: home, index: -1 });
    }
  };
  expect(await effects(browser, [second, third], act, { asked: ["moved"] })).toEqual({
    closedWindowIds: [windowId(other)],
  });
});

test("a tab that a person moves, unpins or takes out of a group is theirs", async () => {
  const { browser, home, first, second, third } = twoWindows();
  browser.tab(third).pinned = true;
  const group = await browser.tabs.group([second], { windowId: browser.tab(second).windowId });
  const act = async () => {
    await browser.tabs.move(third, { windowId: home, index: -1 });
    await browser.tabs.ungroup([second]);
  };
  expect(await effects(browser, [first], act)).toEqual({});
  expect(browser.groupList.map(({ id }) => id)).not.toContain(group);
});

test("a group is removed by the command only if all of its tabs were the command's", async () => {
  const { browser, second, third } = twoWindows();
  const group = await browser.tabs.group([second, third], { windowId: browser.tab(second).windowId });
  const act = async () => {
    await browser.tabs.ungroup([second]);
    await browser.tabs.ungroup([third]);
  };
  expect(await effects(browser, [second], act)).toEqual({ ungroupedTabIds: [tabId(second)] });
  const again = await browser.tabs.group([second, third], { windowId: browser.tab(second).windowId });
  expect(await effects(browser, [second, third], act, { asked: ["ungrouped"] })).toEqual({
    removedGroupIds: [groupId(again)],
  });
  expect(again).not.toBe(group);
});

test("the focus that a person moves is theirs, and the one that goes with a closed window is not", async () => {
  const { browser, home, other, first, second, third } = twoWindows();
  expect(await effects(browser, [first], () => browser.focusWindow(other))).toEqual({});
  const move = async () => {
    for (const id of [second, third]) {
      await browser.tabs.move(id, { windowId: home, index: -1 });
    }
    browser.focusWindow(home);
  };
  expect(await effects(browser, [second, third], move, { asked: ["moved"] })).toEqual({
    closedWindowIds: [windowId(other)],
    focusedWindowId: windowId(home),
  });
});

test("a window that may have been given the focus is named only if it took it", async () => {
  const { browser, home, other } = twoWindows();
  expect(await effects(browser, [], () => {}, { mayFocus: [home, other] })).toEqual({});
  expect(await effects(browser, [], () => browser.focusWindow(other), { mayFocus: [other] })).toEqual({
    focusedWindowId: windowId(other),
  });
});

test("a tab that got another id meanwhile is named by that", async () => {
  const { browser, home, second } = twoWindows();
  const { context } = bench(browser);
  const tab = await browser.tabs.get(second);
  const before = await readBefore(context, tab === undefined ? [] : [tab]);
  const now = browser.discard(second);
  await browser.tabs.move(now, { windowId: home, index: -1 });
  const current = (id: number) => (id === second ? now : id);
  const found = await sideEffects({ ...context, current }, before, { tabs: [second] });
  expect(found?.movedTabIds).toEqual([tabId(now)]);
});

test("with 2,000 tabs in other windows a command reads only its own", async () => {
  const { browser, first } = twoWindows();
  const crowd = browser.openWindow(a, "normal").windowId;
  for (let i = 0; i < 2000; i++) {
    browser.tabList.push({ ...browser.tab(first), id: 10_000 + i, windowId: crowd, active: false });
  }
  let seen = 0;
  const { list, get } = browser.tabs;
  browser.tabs.list = async (id) => {
    const tabs = await list(id);
    seen += tabs.length;
    return tabs;
  };
  browser.tabs.get = (id) => {
    seen++;
    return get(id);
  };
  await run({ case: "pinTabs", value: { tabIds: [tabId(first)], pinned: true } }, bench(browser).context);
  expect(seen).toBeLessThan(10);
});

test("pinTabs that is taken up says what the first attempt changed", async () => {
  const { browser, second, third } = twoWindows();
  const group = await browser.tabs.group([second, third], { windowId: browser.tab(second).windowId });
  const { context, notes } = bench(browser);
  const action = { case: "pinTabs" as const, value: { tabIds: [tabId(second), tabId(third)], pinned: true } };
  const { update } = browser.tabs;
  let calls = 0;
  let stopped = () => {};
  const stop = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  browser.tabs.update = async (id, change) => {
    await update(id, change);
    if (++calls === 2) {
      stopped();
    }
    return new Promise(() => {});
  };
  void run(action, context);
  await stop;
  browser.tabs.update = update;
  const recovery = { ...bench(browser).context, note: notes[0], sinceBegun: () => 0 };
  const result = await recoveries.pinTabs(action.value as never, recovery);
  expect(result).toMatchObject({ pinnedCount: 2 });
  expect(result.sideEffects).toMatchObject({
    removedGroupIds: [groupId(group)],
    ungroupedTabIds: [tabId(second), tabId(third)],
  });
});

test("ungroupTabs that is taken up too late changes nothing more, and tells what is so", async () => {
  const { browser, second, third } = twoWindows();
  const group = await browser.tabs.group([second, third], { windowId: browser.tab(second).windowId });
  const { context } = bench(browser);
  const tabs = (await browser.tabs.list()).filter(({ id }) => [second, third].includes(id));
  const note = await readBefore(context, tabs);
  await browser.tabs.ungroup([second]);
  const late = { ...context, note, sinceBegun: () => 0, deadline: { passed: true } as never };
  const value = { tabIds: [tabId(second), tabId(third)] };
  const result = await recoveries.ungroupTabs(value as never, late);
  expect(short(result.items)).toEqual([`${second} OK`, `${third} SKIPPED`]);
  expect(result.sideEffects).toBeUndefined();
  expect(browser.tab(third).groupId).toBe(group);
});

test("groupTabs that is taken up says what the first attempt changed", async () => {
  const { browser, home, first, second, third } = twoWindows();
  const { context, notes } = bench(browser);
  const value = { tabIds: [tabId(first), tabId(second), tabId(third)], windowId: windowId(home) };
  const { group } = browser.tabs;
  let grouped = () => {};
  const stop = new Promise<void>((resolve) => {
    grouped = resolve;
  });
  browser.tabs.group = async (ids, into) => {
    await group(ids, into);
    grouped();
    return new Promise(() => {});
  };
  void run({ case: "groupTabs", value }, context);
  await stop;
  const result = await recoveries.groupTabs(value as never, {
    ...bench(browser).context,
    note: notes[0],
    sinceBegun: () => 0,
  });
  expect(result).toMatchObject({ groupedCount: 3 });
  expect(result.sideEffects).toMatchObject({ movedTabIds: [tabId(second), tabId(third)] });
  expect(result.sideEffects?.closedWindowIds).toHaveLength(1);
  const old = await recoveries.groupTabs(value as never, {
    ...bench(browser).context,
    note: null,
    sinceBegun: () => 0,
  });
  expect(old.sideEffects).toBeUndefined();
});

test("the window closes while tabs are moved into it: WINDOW_GONE", async () => {
  const { browser, other, first } = twoWindows();
  const more = browser.addTab(a);
  const { move } = browser.tabs;
  browser.tabs.move = async (id, to) => {
    browser.tabs.move = move;
    browser.closeWindow(other);
    return move(id, to);
  };
  const value = { tabIds: [tabId(first), tabId(more.id)], windowId: windowId(other) };
  const result = await run<"moveTabs">({ case: "moveTabs", value }, bench(browser).context);
  expect(short(result.items)).toEqual([`${first} WINDOW_GONE`, `${more.id} WINDOW_GONE`]);
  expect(result).toMatchObject({ movedCount: 0 });
  expect(result.sideEffects).toBeUndefined();
});

test("the window closes while tabs are grouped: WINDOW_GONE for those that are left, NOT_FOUND for those that went with it", async () => {
  const { browser, other, first, second } = twoWindows();
  const { group } = browser.tabs;
  browser.tabs.group = async (ids, into) => {
    browser.closeWindow(other);
    return group(
      ids.filter((id) => browser.tabList.some((tab) => tab.id === id)),
      into,
    );
  };
  const value = { tabIds: [tabId(first), tabId(second)], windowId: windowId(other) };
  const result = await run<"groupTabs">({ case: "groupTabs", value }, bench(browser).context);
  expect(short(result.items)).toEqual([`${first} WINDOW_GONE`, `${second} NOT_FOUND`]);
  expect(result).toMatchObject({ groupId: "", groupedCount: 0 });
});

test("what there is no time for any more is SKIPPED, not unknown, and not done", async () => {
  const browser = new FakeBrowser(a, b, c);
  const [first = 0, , third = 0] = browser.tabList.map(({ id }) => id);
  const { context, timeUp } = bench(browser);
  const { move } = browser.tabs;
  browser.tabs.move = async (id, to) => {
    const moved = await move(id, to);
    timeUp();
    return moved;
  };
  const value = { tabIds: [third, first].map(tabId), index: 0 };
  const result = await run<"moveTabs">({ case: "moveTabs", value }, context);
  // The call for the first one was under way when the time ran out.
  expect(short(result.items)).toEqual([`${third} UNKNOWN_OUTCOME`, `${first} SKIPPED`]);
  expect(browser.urls()).toEqual([a, c, b]);
});

test("a group whose title cannot be set is a group all the same", async () => {
  const { browser, first } = twoWindows();
  browser.groups.update = async () => {
    throw new Error("no");
  };
  const value = { tabIds: [tabId(first)], title: "t" };
  const result = await run<"groupTabs">({ case: "groupTabs", value }, bench(browser).context);
  expect(result.groupedCount).toBe(1);
  expect(result.items[0]?.detail).toContain("without its title");
});

test("activateTab does not say that a window has the focus which the system did not give", async () => {
  const { browser, second } = twoWindows();
  browser.windows.focus = async () => {};
  const { context } = bench(browser);
  const value = { tabId: tabId(second), focusWindow: true };
  expect(await failure({ case: "activateTab", value }, context)).toBe("FAILED");
  expect(browser.tab(second).active).toBe(true);
});

test("activateTab waits for a focus that comes later", async () => {
  const { browser, other, second } = twoWindows();
  const { focus } = browser.windows;
  browser.windows.focus = async (id) => {
    setTimeout(() => void focus(id), 60);
  };
  const value = { tabId: tabId(second), focusWindow: true };
  const result = await run<"activateTab">({ case: "activateTab", value }, bench(browser).context);
  expect(result).toMatchObject({ activated: true, sideEffects: { focusedWindowId: windowId(other) } });
});

test("openTab opens a window where there is none, and names it", async () => {
  const browser = new FakeBrowser(a);
  browser.closeWindow(browser.windowList[0]?.id ?? 0);
  const result = await run<"openTab">({ case: "openTab", value: { url: a } }, bench(browser).context);
  expect(result.sideEffects?.openedWindowIds).toEqual([windowId(browser.windowList[0]?.id ?? 0)]);
});

test("openTab that is taken up shows the tab, and names the window that was opened for it", async () => {
  const browser = new FakeBrowser(a);
  browser.closeWindow(browser.windowList[0]?.id ?? 0);
  const { context, notes } = bench(browser);
  const { create } = browser.windows;
  let created = () => {};
  const stop = new Promise<void>((resolve) => {
    created = resolve;
  });
  browser.windows.create = async (url) => {
    await create(url);
    created();
    return new Promise(() => {});
  };
  void run({ case: "openTab", value: { url: a } }, context);
  await stop;
  const recovery = { ...bench(browser).context, note: notes[0], sinceBegun: () => 0 };
  const result = await recoveries.openTab({ url: a } as never, recovery);
  expect(result.sideEffects?.openedWindowIds).toHaveLength(1);
  expect(browser.tabList).toHaveLength(1);
});

test("an address that makes the new tab go away at once is no success", async () => {
  const { browser } = twoWindows();
  const { create } = browser.tabs;
  browser.tabs.create = async (tab) => {
    const made = await create(tab);
    setTimeout(() => browser.vanish(made.id), 0);
    Object.assign(browser.tab(made.id), { url: "" });
    return made;
  };
  const { get } = browser.tabs;
  browser.tabs.get = async (id) => {
    const tab = await get(id);
    return tab === undefined ? undefined : { ...tab, url: "", pendingUrl: "https://d.test/" };
  };
  expect(await failure({ case: "openTab", value: { url: "https://d.test/" } }, bench(browser).context)).toBe("FAILED");
});

test("an empty tab instead of the address is closed again", async () => {
  const { browser } = twoWindows();
  browser.tabs.create = async () => browser.addTab("");
  const count = browser.tabList.length;
  expect(await failure({ case: "openTab", value: { url: a } }, bench(browser).context)).toBe("FAILED");
  expect(browser.tabList).toHaveLength(count);
});

test("a tab that is about to say that there is no such server is no empty one", async () => {
  const { browser } = twoWindows();
  browser.tabs.create = async () => browser.addTab("", undefined, { loading: true });
  const result = await run<"openTab">({ case: "openTab", value: { url: a } }, bench(browser).context);
  expect(browser.tab(browser.tabList.at(-1)?.id ?? 0).url).toBe("");
  expect(result.url).toBe(a);
});

test("navigateTab waits for the page that says that there is no such server", async () => {
  const { browser, first } = twoWindows();
  const { update, get } = browser.tabs;
  let looks = 0;
  browser.tabs.update = async (id) => {
    Object.assign(browser.tab(id), { loading: true, pendingUrl: "" });
    return (await get(id)) as TabInfo;
  };
  browser.tabs.get = async (id) => {
    if (++looks > 5) {
      browser.tabs.get = get;
      browser.tabs.update = update;
      await update(id, { url: "https://gone.test/" });
    }
    return get(id);
  };
  const value = { tabId: tabId(first), url: "https://gone.test/" };
  const result = await run<"navigateTab">({ case: "navigateTab", value }, bench(browser).context);
  expect(result.url).toBe("https://gone.test/");
});

test("openTab in front never asks the browser to create it there", async () => {
  const { browser } = twoWindows();
  const actives: boolean[] = [];
  const { create } = browser.tabs;
  browser.tabs.create = (tab) => {
    actives.push(tab.active);
    return create(tab);
  };
  await run({ case: "openTab", value: { url: a, active: true } }, bench(browser).context);
  expect(actives).toEqual([false]);
});

test("without a window openTab takes one that is not minimized", async () => {
  const { browser, home, other } = twoWindows();
  browser.window(home).state = "minimized";
  browser.windows.lastFocused = async () => undefined;
  for (const window of browser.windowList) {
    window.focused = false;
  }
  const result = await run<"openTab">({ case: "openTab", value: { url: "https://d.test/" } }, bench(browser).context);
  expect(browser.in(other).map(({ id }) => tabId(id))).toContain(result.tabId);
});

test("a minimized window that the browser unfolds for a tab is named as the one that took the focus", async () => {
  const { browser, other, first } = twoWindows();
  const unfold = () => {
    browser.window(other).state = "normal";
    browser.focusWindow(other);
  };
  browser.window(other).state = "minimized";
  const { create, move } = browser.tabs;
  browser.tabs.create = (tab) => {
    unfold();
    return create(tab);
  };
  browser.tabs.move = (id, to) => {
    unfold();
    return move(id, to);
  };
  const open = { url: "https://d.test/", windowId: windowId(other) };
  const opened = await run<"openTab">({ case: "openTab", value: open }, bench(browser).context);
  expect(opened.sideEffects?.focusedWindowId).toBe(windowId(other));
  browser.window(other).state = "minimized";
  browser.focusWindow(browser.tab(first).windowId);
  const value = { tabIds: [tabId(first)], windowId: windowId(other) };
  browser.addTab(a, browser.tab(first).windowId);
  const moved = await run<"moveTabs">({ case: "moveTabs", value }, bench(browser).context);
  expect(moved.sideEffects?.focusedWindowId).toBe(windowId(other));
});

test("100 tabs are loaded again at once", async () => {
  const browser = new FakeBrowser(...Array.from({ length: 100 }, (_, at) => `https://t${at}.test/`));
  const tabIds = browser.tabList.map(({ id }) => tabId(id));
  const started = performance.now();
  const result = await run<"reloadTabs">({ case: "reloadTabs", value: { tabIds } }, bench(browser).context);
  expect(result.reloadedCount).toBe(100);
  expect(performance.now() - started).toBeLessThan(10_000);
});

test("a private window has to be named, and no tab goes between it and others", async () => {
  const { browser, home, other, first, second } = twoWindows();
  browser.window(other).private = true;
  for (const tab of browser.in(other)) {
    tab.private = true;
  }
  browser.focusWindow(other);
  const { context } = bench(browser);
  await run({ case: "openTab", value: { url: "https://d.test/" } }, context);
  expect(browser.urls(home)).toContain("https://d.test/");
  const move = { tabIds: [tabId(first)], windowId: windowId(other) };
  expect(short((await run<"moveTabs">({ case: "moveTabs", value: move }, context)).items)).toEqual([
    `${first} UNSUPPORTED_WINDOW`,
  ]);
  const group = { tabIds: [tabId(first), tabId(second)], windowId: windowId(home) };
  const grouped = await run<"groupTabs">({ case: "groupTabs", value: group }, context);
  expect(short(grouped.items)).toEqual([`${first} OK`, `${second} UNSUPPORTED_WINDOW`]);
});
