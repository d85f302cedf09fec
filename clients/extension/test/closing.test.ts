import { create } from "@bufbuild/protobuf";
import { CloseTabsByUrlSchema, CloseTabsSchema } from "@throwbar/es/pb/tabs";
import { expect, test } from "vitest";
import { handlers, recoveries } from "../src/commands/handlers.js";
import { FakeBrowser } from "./fake/browser.js";
import { bench, run, short, tabId } from "./fake/context.js";

const soon = () => new Promise((resolve) => setTimeout(resolve, 0));

function tabs(count: number) {
  const browser = new FakeBrowser(...Array.from({ length: count + 1 }, (_, n) => `https://${n}.test/`));
  return { browser, ids: browser.tabList.slice(0, count).map(({ id }) => id), ...bench(browser) };
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

test("a tab that vanishes after it was looked for stops no other", async () => {
  const { browser, ids, context } = tabs(4);
  const [, second] = ids as [number, number];
  browser.tabs.remove = ((real) => async (each) => {
    if (browser.tabList.some(({ id }) => id === second)) {
      browser.vanish(second);
    }
    return real(each);
  })(browser.tabs.remove);
  const result = await run<"closeTabs">({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, context);
  expect(result.closedCount).toBe(4);
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

test("a refusal of the browser is told and nothing is tried again", async () => {
  const { browser, ids, context } = tabs(2);
  browser.busy = 1;
  const result = await run<"closeTabs">({ case: "closeTabs", value: { tabIds: ids.map(tabId) } }, context);
  expect(short(result.items)).toEqual(ids.map((id) => `${id} BUSY`));
  expect(browser.tabList).toHaveLength(3);
});

test("closing every tab leaves an empty one, because the device would go with the last window", async () => {
  const browser = new FakeBrowser("https://a.test/", "https://b.test/");
  const ids = browser.tabList.map(({ id }) => id);
  const result = await run<"closeTabs">(
    { case: "closeTabs", value: { tabIds: ids.map(tabId) } },
    bench(browser).context,
  );
  expect(result.closedCount).toBe(2);
  expect(result.items[0]?.detail).toContain("stays open");
  expect(browser.tabList.map(({ url }) => url)).toEqual(["chrome://newtab/"]);
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

test("after the worker was stopped nothing is asked to close again", async () => {
  const { browser, ids, context, notes } = tabs(3);
  const [first, guarded] = ids as [number, number, number];
  browser.tab(guarded).guarded = true;
  const action = create(CloseTabsSchema, { tabIds: [...ids, 1].map(tabId) });
  void handlers.closeTabs(action, context);
  await soon();
  const { context: later, timeUp } = bench(browser);
  const recovering = recoveries.closeTabs(action, { ...later, note: notes[0] });
  await soon();
  timeUp();
  const result = await recovering;
  expect(result.closedCount).toBe(2);
  expect(short(result.items).sort()).toEqual(
    [`${first} OK`, `${guarded} UNKNOWN_OUTCOME`, `${ids[2]} OK`, "1 NOT_FOUND"].sort(),
  );
  expect(browser.removals.filter((id) => id === guarded)).toHaveLength(1);
});

test("closeTabsByUrl is taken up like closeTabs, whatever the contract says of running it twice", async () => {
  const { browser, ids, context, notes } = tabs(1);
  const [guarded] = ids as [number];
  browser.tab(guarded).guarded = true;
  const action = create(CloseTabsByUrlSchema, { url: "https://0.test/" });
  void handlers.closeTabsByUrl(action, context);
  await soon();
  const { context: later, timeUp } = bench(browser);
  const recovering = recoveries.closeTabsByUrl(action, { ...later, note: notes[0] });
  await soon();
  timeUp();
  expect(await recovering).toMatchObject({ closed: false, closedCount: 0 });
  expect(browser.removals).toEqual([guarded]);
});
