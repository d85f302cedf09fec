import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { CommandFailure } from "@throwbar/es/errors";
import { ErrorCode } from "@throwbar/es/pb/command";
import { Colour, SavedTabSchema } from "@throwbar/es/pb/state";
import { RestoreTabsSchema } from "@throwbar/es/pb/tabs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Context } from "../src/commands/context.js";
import { handlers, recoveries } from "../src/commands/handlers.js";
import { BrowserError } from "../src/platform/port.js";
import { FakeBrowser } from "./fake/browser.js";
import { bench, failure, groupId, run, short, tabId, windowId } from "./fake/context.js";
import { FakeArea } from "./fake/storage.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const url = (n: number) => `https://s${n}.test/`;

/** Saved tabs of a window that is gone, in order. */
function kept(count: number, more: MessageInitShape<typeof SavedTabSchema> = {}) {
  return Array.from({ length: count }, (_, n) =>
    create(SavedTabSchema, { savedId: `s${n}`, url: url(n), windowId: windowId(7), index: n, ...more }),
  );
}

const ids = (rows: readonly { readonly savedId: string }[]) => rows.map(({ savedId }) => savedId);

/** Lets a command go on until it ends. */
async function ends<T>(promise: Promise<T>, ms = 5000): Promise<T> {
  const settled = promise.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(ms);
  await settled;
  return promise;
}

function restoring(browser: FakeBrowser, rows: ReturnType<typeof kept>, session = new FakeArea()) {
  const all = bench(browser, rows, session);
  const action = create(RestoreTabsSchema, { savedIds: ids(rows) });
  return { ...all, action, run: (context: Context = all.context) => handlers.restoreTabs(action, context) };
}

describe("saveTabs", () => {
  test("leaves private tabs alone, and counts them not", async () => {
    const browser = new FakeBrowser("https://a.test/", "https://b.test/", "https://c.test/");
    const [a, b] = browser.tabList.map(({ id }) => id) as [number, number];
    browser.tab(b).private = true;
    const value = { tabIds: [a, b].map(tabId), close: true };
    const result = await ends(run<"saveTabs">({ case: "saveTabs", value }, bench(browser).context));
    expect(short(result.items)).toEqual([`${a} OK`, `${b} SKIPPED`]);
    expect(result).toMatchObject({ savedCount: 1, closedCount: 1 });
    expect(browser.removals).toEqual([a]);
  });

  test("takes where a loading tab goes, and refuses what is too long to be kept", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const loading = browser.addTab("", undefined, { pendingUrl: "https://next.test/" });
    const long = browser.addTab(`https://a.test/${"x".repeat(70_000)}`);
    const value = { tabIds: [loading.id, long.id].map(tabId), close: true };
    const result = await ends(run<"saveTabs">({ case: "saveTabs", value }, bench(browser).context));
    expect(short(result.items)).toEqual([`${loading.id} OK`, `${long.id} REFUSED_URL`]);
    expect(browser.removals).toEqual([loading.id]);
  });

  test("does not close a tab that went to another address after it was saved", async () => {
    const browser = new FakeBrowser("https://a.test/", "https://b.test/", "https://c.test/");
    const [a, b] = browser.tabList.map(({ id }) => id) as [number, number];
    const { context } = bench(browser);
    const begin = async () => {
      browser.tab(b).url = "https://elsewhere.test/";
    };
    const value = { tabIds: [a, b].map(tabId), close: true };
    const result = await ends(run<"saveTabs">({ case: "saveTabs", value }, { ...context, begin }));
    expect(result).toMatchObject({ savedCount: 2, closedCount: 1 });
    expect(result.items[1]?.detail).toContain("went to another address");
    expect(browser.removals).toEqual([a]);
  });

  test("counts no tab that somebody else closed", async () => {
    const browser = new FakeBrowser("https://a.test/", "https://b.test/", "https://c.test/");
    const [a, b] = browser.tabList.map(({ id }) => id) as [number, number];
    const { context } = bench(browser);
    const begin = async () => browser.vanish(b);
    const value = { tabIds: [a, b].map(tabId), close: true };
    const result = await ends(run<"saveTabs">({ case: "saveTabs", value }, { ...context, begin }));
    expect(result).toMatchObject({ savedCount: 2, closedCount: 1 });
    expect(result.items[1]?.detail).toContain("somebody else closed it");
  });
});

describe("restoreTabs", () => {
  test("one refusal of the browser costs only that tab", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const rows = kept(4);
    const { create: real } = browser.tabs;
    browser.tabs.create = async (tab) => {
      if (tab.url === url(2)) {
        throw new BrowserError("refusedUrl", "Navigation rejected.");
      }
      return real(tab);
    };
    const result = await ends(restoring(browser, rows).run());
    expect(result.items.map(({ id, status }) => `${id} ${status}`)).toEqual(["s0 1", "s1 1", "s2 5", "s3 1"]);
    expect(result.items[2]?.detail).toContain("rejected");
    expect(browser.urls(browser.windowList[1]?.id)).toEqual([url(0), url(1), url(3)]);
  });

  test("a window whose first tab is refused is opened with the next one", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const { create: real } = browser.windows;
    browser.windows.create = async (to) => {
      if (to === url(0)) {
        throw new BrowserError("refusedUrl", "Navigation rejected.");
      }
      return real(to);
    };
    const result = await ends(restoring(browser, kept(3)).run());
    expect(result.restoredCount).toBe(2);
    expect(browser.urls(browser.windowList[1]?.id)).toEqual([url(1), url(2)]);
  });

  test("an empty tab is not called restored, and is closed again", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const { create: real } = browser.tabs;
    browser.tabs.create = async (tab) => {
      const made = await real(tab);
      if (tab.url === url(1)) {
        Object.assign(browser.tab(made.id), { url: "", pendingUrl: "" });
        await Promise.resolve();
        Object.assign(browser.tab(made.id), { url: "", pendingUrl: "" });
      }
      return made;
    };
    const result = await ends(restoring(browser, kept(3)).run());
    expect(result.items.map(({ status }) => status)).toEqual([1, 5, 1]);
    expect(browser.urls(browser.windowList[1]?.id)).toEqual([url(0), url(2)]);
  });

  test("what is not its turn when the time runs out is left alone, and what was opened counts", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const { run: restore, context, timeUp, notes } = restoring(browser, kept(50));
    let begun = 0;
    const begin = async (note: unknown) => {
      begun++;
      await context.begin(note);
      if (begun === 2) {
        timeUp();
      }
    };
    const result = await ends(restore({ ...context, begin }));
    expect(result.restoredCount).toBe(20);
    expect(result.items.filter(({ status }) => status === 10)).toHaveLength(30);
    expect(browser.tabList).toHaveLength(21);
    expect(notes).toHaveLength(3);
  });

  test("a command that may not begin any more fails, if nothing was done", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const rows = kept(2);
    const begin = () => Promise.reject(new CommandFailure(ErrorCode.EXPIRED, "late"));
    const value = { savedIds: ids(rows) };
    const context = { ...bench(browser, rows).context, begin };
    expect(await ends(failure({ case: "restoreTabs", value }, context))).toBe("EXPIRED");
    expect(browser.tabList).toHaveLength(1);
  });

  test("no more are opened while many load, and not for ever", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const { create: real } = browser.tabs;
    let opened = 0;
    browser.tabs.create = async (tab) => {
      const made = await real(tab);
      opened++;
      queueMicrotask(() => {
        browser.tab(made.id).loading = true;
      });
      return made;
    };
    const restored = restoring(browser, kept(60)).run();
    await vi.advanceTimersByTimeAsync(300);
    // The window's own tab is there already: with one portion too few load, with two enough do.
    expect(opened).toBe(39);
    expect((await ends(restored, 10_000)).restoredCount).toBe(60);
  });

  test("two commands at once with tabs of one window and one group open one window and make one group", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const rows = kept(6, { groupId: groupId(9), groupTitle: "g" });
    const { context } = bench(browser, rows);
    const restore = (some: typeof rows) =>
      run<"restoreTabs">({ case: "restoreTabs", value: { savedIds: ids(some) } }, context);
    await ends(Promise.all([restore(rows.slice(0, 3)), restore(rows.slice(3))]));
    expect(browser.windowList).toHaveLength(2);
    expect(browser.groupList).toMatchObject([{ title: "g" }]);
    const there = browser.in(browser.windowList[1]?.id ?? 0);
    expect(there.map(({ groupId: group }) => group)).toEqual(there.map(() => browser.groupList[0]?.id));
    expect(there.map((tab) => tab.url)).toEqual(rows.map((row) => row.url));
  });

  test("a tab that a person drags is waited for", async () => {
    const browser = new FakeBrowser("https://a.test/");
    browser.busy = 2;
    expect((await ends(restoring(browser, kept(3)).run())).restoredCount).toBe(3);
    expect(browser.tabList).toHaveLength(4);
  });

  test("an address is opened once, however often it is named, and twice if it was kept twice", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const rows = kept(2, { url: "https://same.test/" });
    const value = { savedIds: [...ids(rows), ...ids(rows)] };
    const result = await ends(run<"restoreTabs">({ case: "restoreTabs", value }, bench(browser, rows).context));
    expect(result.restoredCount).toBe(2);
    expect(new Set(result.items.map(({ newId }) => newId)).size).toBe(2);
    expect(browser.tabList).toHaveLength(3);
  });
});

describe("restoreTabs after the worker was stopped", () => {
  /** Stopped after so many tabs were opened by calls of their own. */
  async function stopped(count: number, after: number, change: (browser: FakeBrowser) => void = () => {}) {
    const browser = new FakeBrowser("https://a.test/");
    const session = new FakeArea();
    const rows = kept(count);
    const first = restoring(browser, rows, session);
    const { create: real } = browser.tabs;
    let opened = 0;
    browser.tabs.create = async (tab) => {
      if (opened === after) {
        return new Promise(() => {});
      }
      opened++;
      const made = await real(tab);
      return opened === after ? new Promise(() => {}) : made;
    };
    void first.run();
    await vi.advanceTimersByTimeAsync(3000);
    browser.deafen();
    browser.tabs.create = real;
    change(browser);
    const next = restoring(browser, rows, session);
    const recovery = { ...next.context, note: first.notes.at(-1), sinceBegun: () => 2000 };
    return {
      browser,
      recover: (more: Partial<Context> = {}) => recoveries.restoreTabs(first.action, { ...recovery, ...more }),
    };
  }

  test("none is opened twice and none is lost", async () => {
    const { browser, recover } = await stopped(45, 30);
    expect((await ends(recover(), 10_000)).restoredCount).toBe(45);
    const urls = browser.urls(browser.windowList[1]?.id);
    expect([...urls].sort()).toEqual(
      kept(45)
        .map((row) => row.url)
        .sort(),
    );
    expect(browser.windowList).toHaveLength(2);
  });

  test("a tab that went elsewhere at once is not opened again: nobody knows whether it is one of the new ones", async () => {
    const { browser, recover } = await stopped(3, 2, (each) => {
      const moved = each.tabList.find((tab) => tab.url === url(1));
      Object.assign(moved ?? {}, { url: "https://login.test/" });
    });
    const result = await ends(recover());
    expect(result.items.map(({ status }) => status)).toEqual([1, 9, 1]);
    expect(browser.tabList).toHaveLength(4);
  });

  test("a group that was made and had no name yet gets its name and colour", async () => {
    const browser = new FakeBrowser("https://a.test/");
    const session = new FakeArea();
    const rows = kept(3, { groupId: groupId(9), groupTitle: "g", groupColour: Colour.CYAN });
    const first = restoring(browser, rows, session);
    const { update: real } = browser.groups;
    browser.groups.update = () => new Promise(() => {});
    void first.run();
    await vi.advanceTimersByTimeAsync(3000);
    expect(browser.groupList).toHaveLength(1);
    browser.deafen();
    browser.groups.update = real;
    const next = restoring(browser, rows, session);
    const recovery = { ...next.context, note: first.notes.at(-1), sinceBegun: () => 2000 };
    expect((await ends(recoveries.restoreTabs(first.action, recovery), 10_000)).restoredCount).toBe(3);
    expect(browser.groupList).toMatchObject([{ title: "g", colour: "cyan" }]);
  });

  test("nothing is opened after the time of the command", async () => {
    const { browser, recover } = await stopped(45, 30);
    const before = browser.tabList.length;
    const begin = () => Promise.reject(new CommandFailure(ErrorCode.EXPIRED, "late"));
    const result = await ends(recover({ begin }), 10_000);
    expect(browser.tabList).toHaveLength(before);
    expect(result.restoredCount).toBe(before - 1);
    expect(result.items.filter(({ status }) => status === 10)).toHaveLength(45 - result.restoredCount);
  });
});
