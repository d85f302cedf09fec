import { expect, test, vi } from "vitest";
import { Collector } from "../src/state/collector.js";
import { clip } from "../src/state/convert.js";
import { Mirror } from "../src/state/mirror.js";
import type { StatePush } from "../src/state/push.js";
import { FakeBrowser } from "./fake/browser.js";
import { identity, tabId } from "./fake/context.js";

function make(browser = new FakeBrowser("https://a.test/", "https://b.test/", "https://c.test/")) {
  const pushes: StatePush[] = [];
  let taken = true;
  const collector = new Collector({
    browser,
    identity: async () => identity,
    send: async (push) => {
      pushes.push(push);
      return taken;
    },
  });
  browser.onChange((change) => collector.changed(change));
  return {
    browser,
    collector,
    pushes,
    refuse: () => {
      taken = false;
    },
    accept: () => {
      taken = true;
    },
  };
}

test("the first push has everything, a later one what changed", async () => {
  const { browser, collector, pushes } = make();
  await collector.flush();
  expect(pushes[0]).toMatchObject({ full: true, removed: [] });
  expect(pushes[0]?.tabs).toHaveLength(3);
  const [first, second] = browser.tabList;
  await browser.tabs.update(second?.id ?? 0, { muted: true });
  await collector.flush();
  expect(pushes[1]).toMatchObject({ full: false, removed: [] });
  expect(pushes[1]?.tabs.map(({ tabId: id, muted }) => [id, muted])).toEqual([[tabId(second?.id ?? 0), true]]);
  browser.vanish(first?.id ?? 0);
  await collector.flush();
  expect(pushes[2]?.removed).toEqual([tabId(first?.id ?? 0)]);
  expect(pushes[2]?.tabs.map(({ index }) => index)).toEqual([0, 1]);
  await collector.flush();
  expect(pushes).toHaveLength(3);
});

test("a flood of changes is one push, and not put off for ever", async () => {
  vi.useFakeTimers();
  try {
    const { browser, collector, pushes } = make();
    await collector.flush();
    for (let n = 0; n < 20; n++) {
      browser.addTab(`https://${n}.test/`);
    }
    await vi.advanceTimersByTimeAsync(100);
    expect(pushes).toHaveLength(2);
    const start = performance.now();
    while (pushes.length < 3) {
      await browser.tabs.update(browser.tabList[0]?.id ?? 0, { muted: true });
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(performance.now() - start).toBeLessThanOrEqual(300);
  } finally {
    vi.useRealTimers();
  }
});

test("what nobody took is sent whole the next time", async () => {
  const { browser, collector, pushes, refuse, accept } = make();
  refuse();
  await collector.flush();
  accept();
  await collector.flush();
  expect(pushes.map(({ full }) => full)).toEqual([true, true]);
  browser.addTab("https://d.test/");
  await collector.flush();
  expect(pushes[2]?.full).toBe(false);
});

test("a tab that loads carries the address it goes to, and one that was put to sleep its new id", async () => {
  const { browser, collector, pushes } = make();
  const loading = browser.addTab("", undefined, { pendingUrl: "https://d.test/" });
  const asleep = browser.tabList[0]?.id ?? 0;
  await collector.flush();
  expect(pushes[0]?.tabs.find(({ tabId: id }) => id === tabId(loading.id))?.url).toBe("https://d.test/");
  const now = browser.discard(asleep);
  await collector.flush();
  expect(pushes[1]?.removed).toEqual([tabId(asleep)]);
  expect(pushes[1]?.tabs).toMatchObject([{ tabId: tabId(now), discarded: true }]);
});

test("the mirror turns pushes into a snapshot and numbered deltas, and tells nothing twice", async () => {
  const { browser, collector, pushes } = make();
  await collector.flush();
  const mirror = new Mirror();
  expect(mirror.filled).toBe(false);
  const [first] = mirror.apply(pushes[0] as StatePush);
  expect(first?.tabs).toHaveLength(3);
  const [snapshot] = mirror.snapshot();
  expect(snapshot).toMatchObject({ sequence: 2n, chunk: 0, last: true });
  expect(snapshot?.windows).toHaveLength(1);
  expect(mirror.apply(pushes[0] as StatePush)).toEqual([]);
  const gone = browser.tabList[1]?.id ?? 0;
  browser.vanish(gone);
  await collector.flush();
  const [delta] = mirror.apply(pushes[1] as StatePush);
  expect(delta?.sequence).toBe(3n);
  expect(delta?.removed).toEqual([tabId(gone)]);
  expect(delta?.tabs.map(({ index }) => index)).toEqual([1]);
});

test("a whole push takes away what is not in it", async () => {
  const { collector, pushes } = make();
  await collector.flush();
  const mirror = new Mirror();
  const all = pushes[0] as StatePush;
  mirror.apply(all);
  const [delta] = mirror.apply({ ...all, tabs: all.tabs.slice(1), windows: [] });
  expect(delta?.removed).toEqual([all.tabs[0]?.tabId, all.windows[0]?.windowId]);
});

test("a part is of no use before the whole was seen", async () => {
  const mirror = new Mirror();
  expect(mirror.apply({ full: false, tabs: [], windows: [], groups: [], removed: [] })).toEqual([]);
  expect(mirror.filled).toBe(false);
});

test("a large state is cut into messages that fit", () => {
  const mirror = new Mirror();
  const tabs = Array.from({ length: 200 }, (_, n) => ({
    tabId: tabId(n),
    windowId: "w",
    groupId: "",
    index: n,
    url: `https://a.test/${"x".repeat(60_000)}`,
    title: "",
    active: false,
    pinned: false,
    muted: false,
    audible: false,
    discarded: false,
  }));
  const deltas = mirror.apply({ full: true, tabs, windows: [], groups: [], removed: [] });
  expect(deltas.map(({ sequence }) => sequence)).toEqual(deltas.map((_, n) => BigInt(n + 1)));
  const chunks = mirror.snapshot();
  expect(chunks.length).toBeGreaterThan(10);
  expect(chunks.flatMap((chunk) => chunk.tabs)).toHaveLength(200);
  expect(chunks.map(({ chunk }) => chunk)).toEqual(chunks.map((_, n) => n));
  expect(chunks.filter(({ last }) => last)).toEqual([chunks.at(-1)]);
  for (const chunk of chunks) {
    expect(chunk.tabs.reduce((sum, tab) => sum + tab.url.length, 0)).toBeLessThan(1_100_000);
  }
});

test.each([
  ["short", 100, "short"],
  ["äöü", 5, "äö"],
  ["a😀b", 4, "a"],
  ["a\ud800b", 100, "a\ufffdb"],
])("%j is cut to %i bytes", (text, bytes, out) => {
  expect(clip(text, bytes)).toBe(out);
});
