import { create } from "@bufbuild/protobuf";
import { CommandFailure } from "@throwbar/es/errors";
import { ErrorCode } from "@throwbar/es/pb/command";
import { CloseTabsByUrlSchema, CloseTabsSchema } from "@throwbar/es/pb/tabs";
import { describe, expect, test, vi } from "vitest";
import { Asked } from "../src/commands/asked.js";
import { handlers, recoveries } from "../src/commands/handlers.js";
import type { BrowserChange } from "../src/platform/port.js";
import { FakeBrowser } from "./fake/browser.js";
import { FakeClock } from "./fake/clock.js";
import { bench, failure, groupId, run, short, tabId, windowId } from "./fake/context.js";
import { FakeArea } from "./fake/storage.js";

const soon = () => new Promise((resolve) => setTimeout(resolve, 0));

function tabs(count: number, session = new FakeArea()) {
  const browser = new FakeBrowser(...Array.from({ length: count + 1 }, (_, n) => `https://${n}.test/`));
  return { browser, ids: browser.tabList.slice(0, count).map(({ id }) => id), ...bench(browser, [], session) };
}

test("each tab is closed once, and one that is gone costs the others nothing", async () => {
  const { browser, ids, context, notes } = tabs(4);
  const [first, gone] = ids as [number, number];
  browser.vanish(gone);
  const tabIds = [...ids, first].map(tabId);
  const result = await run<"closeTabs">({ case: "closeTabs", value: { tabIds } }, context);
  expect(result.closedCount).toBe(3);
  expect(short(result.items)).toEqual(ids.map((id) => `${id} ${id === gone ? "NOT_FOUND" : "OK"}`));
  expect(browser.removals).toEqual(ids.filter((id) => id !== gone));
  expect(notes).toHaveLength(1);
});

test("a tab that somebody else closes just then stops no other, and is not counted", async () => {
  const { browser, ids, context } = tabs(4);
  const [, second] = ids as [number, number];
  browser.tabs.remove = ((real) => async (each) => {
    if (browser.tabList.some(({ id }) => id === second)) {
      browser.vanish(second);
    }
    return real(each);
  })(browser.tabs.remove);
  const result = await run<"closeTabs">({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, context);
  expect(result.closedCount).toBe(3);
  expect(short(result.items)).toEqual(ids.map((id) => `${id} ${id === second ? "NOT_FOUND" : "OK"}`));
  expect(browser.tabList).toHaveLength(1);
});

test("a page that asks is waited for until it is time to answer, and asked once", async () => {
  const { browser, ids, context, timeUp } = tabs(3);
  const [, guarded] = ids as [number, number];
  browser.tab(guarded).guarded = true;
  const closing = run<"closeTabs">({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, context);
  await soon();
  expect(browser.tabList.map(({ id }) => id)).toContain(guarded);
  timeUp();
  const result = await closing;
  expect(short(result.items)[1]).toBe(`${guarded} BLOCKED_BY_PAGE`);
  expect(result.closedCount).toBe(2);
  expect(browser.removals.filter((id) => id === guarded)).toHaveLength(1);
});

test("a person who says leave makes the wait end", async () => {
  const { browser, ids, context } = tabs(1);
  const [guarded] = ids as [number];
  browser.tab(guarded).guarded = true;
  const closing = run<"closeTabs">({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, context);
  await soon();
  browser.vanish(guarded);
  expect((await closing).closedCount).toBe(1);
});

test("a person who drags a tab is waited for, and not for ever", async () => {
  vi.useFakeTimers();
  try {
    const { browser, ids, context } = tabs(2);
    browser.busy = 2;
    const closing = run<"closeTabs">({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, context);
    await vi.advanceTimersByTimeAsync(1000);
    expect((await closing).closedCount).toBe(2);
    browser.busy = 1000;
    const [left] = browser.tabList;
    const value = { tabIds: [tabId(left?.id ?? 0)] };
    browser.addTab("https://other.test/");
    const refused = run<"closeTabs">({ case: "closeTabs", value }, context);
    await vi.advanceTimersByTimeAsync(5000);
    expect(short((await refused).items)).toEqual([`${left?.id} BUSY`]);
    // It was not asked, so it may be asked later.
    browser.busy = 0;
    expect(await run<"closeTabs">({ case: "closeTabs", value }, context)).toMatchObject({ closedCount: 1 });
  } finally {
    vi.useRealTimers();
  }
});

test("closing every tab leaves an empty one, because the device would go with the last window", async () => {
  const browser = new FakeBrowser("https://a.test/", "https://b.test/");
  const ids = browser.tabList.map(({ id }) => id);
  const result = await run<"closeTabs">(
    { case: "closeTabs", value: { tabIds: ids.map(tabId) } },
    bench(browser).context,
  );
  expect(result.closedCount).toBe(2);
  expect(browser.tabList.map(({ url }) => url)).toEqual(["chrome://newtab/"]);
  expect(result.sideEffects).toMatchObject({ openedTabIds: [tabId(browser.tabList[0]?.id ?? 0)], closedWindowIds: [] });
});

test("closeTabsByUrl closes loading tabs by where they go, and says when nothing matched", async () => {
  const browser = new FakeBrowser("https://a.test/1", "https://b.test/");
  browser.addTab("", undefined, { pendingUrl: "https://a.test/2" });
  const { context } = bench(browser);
  const value = { url: "https://a.test/*" };
  expect(await run({ case: "closeTabsByUrl", value }, context)).toMatchObject({
    closed: true,
    closedCount: 2,
    reason: "",
  });
  expect(await run({ case: "closeTabsByUrl", value }, context)).toMatchObject({ closed: false, reason: "not_found" });
  expect(browser.urls()).toEqual(["https://b.test/"]);
});

/** The next worker takes the command up. */
function next(browser: FakeBrowser, session: FakeArea, notes: readonly unknown[]) {
  const { context, timeUp } = bench(browser, [], session);
  return { recovery: { ...context, note: notes.at(-1), sinceBegun: () => 0 }, timeUp };
}

test("after the worker was stopped nothing is asked to close again", async () => {
  const session = new FakeArea();
  const { browser, ids, context, notes } = tabs(3, session);
  const [first, guarded] = ids as [number, number, number];
  browser.tab(guarded).guarded = true;
  const action = create(CloseTabsSchema, { tabIds: [...ids, 1].map(tabId) });
  void handlers.closeTabs(action, context);
  await soon();
  const { recovery, timeUp } = next(browser, session, notes);
  const recovering = recoveries.closeTabs(action, recovery);
  await soon();
  timeUp();
  const result = await recovering;
  expect(result.closedCount).toBe(2);
  expect(short(result.items)).toEqual([`${first} OK`, `${guarded} UNKNOWN_OUTCOME`, `${ids[2]} OK`, "1 NOT_FOUND"]);
  expect(browser.removals.filter((id) => id === guarded)).toHaveLength(1);
});

test("closeTabsByUrl is taken up like closeTabs, whatever the contract says of running it twice", async () => {
  const session = new FakeArea();
  const { browser, ids, context, notes } = tabs(1, session);
  const [guarded] = ids as [number];
  browser.tab(guarded).guarded = true;
  const action = create(CloseTabsByUrlSchema, { url: "https://0.test/" });
  void handlers.closeTabsByUrl(action, context);
  await soon();
  const { recovery, timeUp } = next(browser, session, notes);
  const recovering = recoveries.closeTabsByUrl(action, recovery);
  await soon();
  timeUp();
  expect(await recovering).toMatchObject({ closed: false, closedCount: 0 });
  expect(browser.removals).toEqual([guarded]);
});

test("what was not asked when the worker was stopped is closed by the next one", async () => {
  const session = new FakeArea();
  const { browser, ids, context, notes } = tabs(60, session);
  const [guarded] = ids as [number];
  browser.tab(guarded).guarded = true;
  const action = create(CloseTabsSchema, { tabIds: ids.map(tabId) });
  // Stopped while the first fifty are closed.
  void handlers.closeTabs(action, context);
  await soon();
  browser.deafen();
  expect(browser.removals).toHaveLength(50);
  vi.useFakeTimers();
  try {
    const { recovery } = next(browser, session, notes);
    const recovering = recoveries.closeTabs(action, recovery);
    await vi.advanceTimersByTimeAsync(2000);
    const result = await recovering;
    expect(result.closedCount).toBe(59);
    expect(short(result.items)[0]).toBe(`${guarded} UNKNOWN_OUTCOME`);
    expect(new Set(browser.removals).size).toBe(browser.removals.length);
  } finally {
    vi.useRealTimers();
  }
});

describe("force", () => {
  test("closes a page that asks, by one more call for each tab that was named and is open", async () => {
    vi.useFakeTimers();
    try {
      const { browser, ids, context } = tabs(3);
      const [guarded, , unnamed] = ids as [number, number, number];
      browser.tab(guarded).guarded = true;
      browser.tab(unnamed).guarded = true;
      const value = { tabIds: ids.slice(0, 2).map(tabId), force: true };
      const closing = run<"closeTabs">({ case: "closeTabs", value }, context);
      await vi.advanceTimersByTimeAsync(900);
      expect(browser.removals).toEqual([guarded, ids[1]]);
      await vi.advanceTimersByTimeAsync(200);
      expect(await closing).toMatchObject({ closedCount: 2 });
      expect(browser.removals).toEqual([guarded, ids[1], guarded]);
      expect(browser.tab(unnamed).askedAt).toBeUndefined();
    } finally {
      vi.useRealTimers();
    }
  });

  test("closes what an earlier command asked", async () => {
    const { browser, ids, context, timeUp } = tabs(1);
    const [guarded] = ids as [number];
    browser.tab(guarded).guarded = true;
    const value = { tabIds: ids.map(tabId) };
    const first = run<"closeTabs">({ case: "closeTabs", value }, context);
    await soon();
    timeUp();
    expect(short((await first).items)).toEqual([`${guarded} BLOCKED_BY_PAGE`]);
    const forced = { ...bench(browser).context, asked: context.asked };
    const result = await run<"closeTabs">({ case: "closeTabs", value: { ...value, force: true } }, forced);
    expect(result.closedCount).toBe(1);
  });

  test("is finished by the next worker, because exactly these tabs were approved for it", async () => {
    vi.useFakeTimers();
    try {
      const session = new FakeArea();
      const { browser, ids, context, notes } = tabs(2, session);
      const [guarded] = ids as [number];
      browser.tab(guarded).guarded = true;
      const action = create(CloseTabsSchema, { tabIds: ids.slice(0, 1).map(tabId), force: true });
      void handlers.closeTabs(action, { ...context, signal: new AbortController().signal });
      await vi.advanceTimersByTimeAsync(100);
      browser.deafen();
      const real = browser.tabs.remove;
      browser.tabs.remove = () => new Promise(() => {}); // the first worker does nothing any more
      await vi.advanceTimersByTimeAsync(2000);
      browser.tabs.remove = real;
      const { recovery } = next(browser, session, notes);
      const recovering = recoveries.closeTabs(action, recovery);
      await vi.advanceTimersByTimeAsync(3000);
      expect(await recovering).toMatchObject({ closedCount: 1 });
    } finally {
      vi.useRealTimers();
    }
  });

  test("is not finished after its time", async () => {
    const session = new FakeArea();
    const { browser, ids, context, notes } = tabs(1, session);
    const [guarded] = ids as [number];
    browser.tab(guarded).guarded = true;
    const action = create(CloseTabsSchema, { tabIds: ids.map(tabId), force: true });
    void handlers.closeTabs(action, context);
    await soon();
    browser.deafen();
    const { recovery, timeUp } = next(browser, session, notes);
    const begin = () => Promise.reject(new CommandFailure(ErrorCode.EXPIRED, "late"));
    const recovering = recoveries.closeTabs(action, { ...recovery, begin });
    await soon();
    timeUp();
    expect(short((await recovering).items)).toEqual([`${guarded} UNKNOWN_OUTCOME`]);
    expect(browser.removals).toEqual([guarded]);
  });
});

describe("a tab that was asked and is still open", () => {
  /** A command that asked it has ended. */
  async function asked() {
    const session = new FakeArea();
    const { browser, ids, context, timeUp } = tabs(2, session);
    const [guarded, plain] = ids as [number, number];
    browser.tab(guarded).guarded = true;
    const closing = run<"closeTabs">({ case: "closeTabs", value: { tabIds: [tabId(guarded)] } }, context);
    await soon();
    timeUp();
    await closing;
    const again = async (startAgain = false) => {
      const own = bench(browser, [], session).context;
      const used = startAgain ? own : { ...own, asked: context.asked };
      const closingAgain = run<"closeTabs">(
        { case: "closeTabs", value: { tabIds: [guarded, plain].map(tabId) } },
        used,
      );
      return short((await closingAgain).items);
    };
    return { browser, guarded, plain, context, again };
  }

  test("is not asked by another command, of this worker or the next", async () => {
    const { browser, guarded, plain, again } = await asked();
    expect(await again()).toEqual([`${guarded} BLOCKED_BY_PAGE`, `${plain} OK`]);
    browser.deafen();
    expect(await again(true)).toEqual([`${guarded} BLOCKED_BY_PAGE`, `${plain} NOT_FOUND`]);
    expect(browser.removals.filter((id) => id === guarded)).toHaveLength(1);
  });

  test("is not asked when it is saved and closed", async () => {
    const { browser, guarded, context } = await asked();
    const saving = { ...bench(browser).context, asked: context.asked };
    const value = { tabIds: [tabId(guarded)], close: true };
    const result = await run<"saveTabs">({ case: "saveTabs", value }, saving);
    expect(result).toMatchObject({ savedCount: 1, closedCount: 0 });
    expect(result.items[0]?.detail).toContain("still open");
    expect(browser.removals).toEqual([guarded]);
  });

  test("is asked again once its page is seen to run, and not for what the page did just before it asked", async () => {
    const session = new FakeArea();
    const clock = new FakeClock();
    const browser = new FakeBrowser("https://a.test/", "https://b.test/");
    const [guarded] = browser.tabList.map(({ id }) => id) as [number];
    let heard: (change: BrowserChange) => void = () => {};
    browser.onChange = (listener) => {
      heard = listener;
      return () => {};
    };
    const tell = (loading: boolean, page: boolean) => heard({ kind: "tab", id: guarded, loading, page });
    const marks = new Asked(browser, session, clock);
    expect(await marks.claim([guarded])).toEqual([guarded]);
    tell(false, true);
    tell(true, false);
    expect(await marks.claim([guarded])).toEqual([]);
    clock.pass(3000);
    tell(false, false); // it was pinned, or grouped
    expect(await marks.claim([guarded])).toEqual([]);
    tell(false, true);
    expect(await marks.claim([guarded])).toEqual([guarded]);
    clock.pass(3000);
    tell(true, false);
    expect(await marks.claim([guarded])).toEqual([guarded]);
  });

  test("is forgotten once it is gone or asleep", async () => {
    const session = new FakeArea();
    const browser = new FakeBrowser("https://a.test/", "https://b.test/", "https://c.test/");
    const [first, second] = browser.tabList.map(({ id }) => id) as [number, number];
    const marks = new Asked(browser, session, new FakeClock());
    await marks.claim([first, second]);
    browser.vanish(first);
    browser.discard(second);
    await soon();
    expect(session.items.get("asked")).toBe("[]");
    const later = new Asked(browser, session, new FakeClock());
    expect(await later.claim([second])).toEqual([second]);
  });

  test("cannot be asked where that cannot be written down", async () => {
    const session = new FakeArea();
    const { browser, ids, context } = tabs(1, session);
    session.full = true;
    expect(await failure({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, context)).toContain("quota");
    expect(browser.removals).toEqual([]);
    session.full = false;
    expect(
      (await run<"closeTabs">({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, context)).closedCount,
    ).toBe(1);
  });
});

test("a tab on its way elsewhere is not asked while its page may be asking, and force does not wait", async () => {
  vi.useFakeTimers();
  try {
    const { browser, ids, context } = tabs(2);
    const [slow, quick] = ids as [number, number];
    browser.tab(slow).pendingUrl = "https://next.test/";
    browser.tab(quick).pendingUrl = "https://next.test/";
    const value = { tabIds: ids.map(tabId) };
    const closing = run<"closeTabs">({ case: "closeTabs", value }, context);
    await vi.advanceTimersByTimeAsync(500);
    browser.tab(quick).pendingUrl = "";
    await vi.advanceTimersByTimeAsync(4000);
    expect(short((await closing).items)).toEqual([`${slow} BUSY`, `${quick} OK`]);
    expect(browser.removals).toEqual([quick]);
    const forced = run<"closeTabs">({ case: "closeTabs", value: { ...value, force: true } }, context);
    await vi.advanceTimersByTimeAsync(100);
    expect((await forced).closedCount).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

test("what was not asked when the time runs out is left alone, and what is still closing is not called blocked", async () => {
  vi.useFakeTimers();
  try {
    const { browser, ids, context, timeUp } = tabs(120);
    // Each tab takes a while, as it does in a browser.
    browser.tabs.remove = async (some) => {
      browser.removals.push(...some);
      for (const id of some) {
        await new Promise((resolve) => setTimeout(resolve, 30));
        browser.vanish(id);
      }
    };
    const closing = run<"closeTabs">({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, context);
    await vi.advanceTimersByTimeAsync(2000);
    timeUp();
    await vi.advanceTimersByTimeAsync(500);
    const result = await closing;
    const count = (status: string) => short(result.items).filter((each) => each.endsWith(status)).length;
    expect(count("SKIPPED")).toBe(20);
    expect(count("BLOCKED_BY_PAGE")).toBe(0);
    expect(count("UNKNOWN_OUTCOME")).toBeGreaterThan(0);
    expect(count(" OK")).toBe(result.closedCount);
    expect(result.closedCount + count("UNKNOWN_OUTCOME")).toBe(100);
    expect(browser.removals).toHaveLength(100);
  } finally {
    vi.useRealTimers();
  }
});

test("a tab that gets another id on the way is closed under that", async () => {
  const { browser, ids, context } = tabs(2);
  const [first] = ids as [number];
  const now = new Map<number, number>();
  browser.onChange((change) => {
    if (change.kind === "replaced") {
      now.set(change.id, change.by);
    }
  });
  browser.tabs.remove = ((real) => async (each) => {
    browser.tabs.remove = real;
    browser.discard(first);
    return real(each);
  })(browser.tabs.remove);
  const following = { ...context, current: (id: number) => now.get(id) ?? id };
  const result = await run<"closeTabs">({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, following);
  expect(result.closedCount).toBe(2);
  expect(browser.tabList).toHaveLength(1);
});

test("an old and a new id of one tab are one tab", async () => {
  const { browser, ids, context } = tabs(2);
  const [first] = ids as [number];
  const now = browser.discard(first);
  const following = { ...context, current: (id: number) => (id === first ? now : id) };
  const value = { tabIds: [tabId(first), tabId(now)] };
  const result = await run<"closeTabs">({ case: "closeTabs", value }, following);
  expect(result).toMatchObject({ closedCount: 1, items: [{ id: tabId(first) }] });
});

test("windows and groups that go with their last tab are told", async () => {
  const browser = new FakeBrowser("https://a.test/", "https://b.test/");
  const window = browser.addWindow();
  const lone = browser.addTab("https://c.test/", window);
  const grouped = browser.tabList[1]?.id ?? 0;
  const group = await browser.tabs.group([grouped], { windowId: browser.tabList[1]?.windowId ?? 0 });
  const value = { tabIds: [lone.id, grouped].map(tabId) };
  const result = await run<"closeTabs">({ case: "closeTabs", value }, bench(browser).context);
  expect(result.sideEffects).toMatchObject({ closedWindowIds: [windowId(window)], removedGroupIds: [groupId(group)] });
});
