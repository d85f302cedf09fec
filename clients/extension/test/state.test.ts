import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { TabInfo } from "../src/platform/port.js";
import { Collector } from "../src/state/collector.js";
import { clip, fittingAddress, isCut, plainTab, shownAddress } from "../src/state/convert.js";
import type { Replaced, StatePush } from "../src/state/push.js";
import { identity } from "./fake/context.js";
import { Restless } from "./fake/restless.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function make(count = 3) {
  const strip = new Restless();
  const windowId = strip.openWindow();
  strip.fill(windowId, count - 1);
  const pushes: StatePush[] = [];
  let answer: boolean | undefined = true;
  const known: Replaced[] = [];
  const collector = new Collector({
    browser: strip,
    identity: async () => identity,
    send: async (push) => {
      pushes.push(JSON.parse(JSON.stringify(push)) as StatePush);
      return answer;
    },
    replaced: () => known,
  });
  strip.deliver();
  strip.onChange((change) => collector.changed(change));
  const flush = async () => {
    strip.deliver();
    await collector.flush();
    return pushes.at(-1) as StatePush;
  };
  return {
    strip,
    windowId,
    collector,
    pushes,
    known,
    flush,
    id: (index: number) => strip.lists.get(windowId)?.[index]?.id ?? 0,
    answer: (to: boolean | undefined) => {
      answer = to;
    },
  };
}

const named = (push: StatePush | undefined) => push?.change.tabs.map(({ index, tab }) => [index, tab.id]);

test("the first push has everything, a later one what changed, and nothing is no push", async () => {
  const { strip, pushes, flush, id } = make();
  const all = await flush();
  expect(all).toMatchObject({ full: true, number: 1, change: { removed: { tabs: [] }, replaced: [] } });
  expect(all.change.tabs).toHaveLength(3);
  expect(all.change.windows).toHaveLength(1);
  const [first, second] = [id(0), id(1)];
  strip.change(second, { muted: true });
  const muted = await flush();
  expect(muted).toMatchObject({
    full: false,
    number: 2,
    change: { tabs: [{ index: 1, tab: { id: second, muted: true } }] },
  });
  expect(muted.change.windows).toEqual([]);
  strip.close(first);
  const closed = await flush();
  expect(closed.change).toMatchObject({ tabs: [], removed: { tabs: [first] } });
  await flush();
  expect(pushes).toHaveLength(3);
});

test("a flood of changes is one push, and not put off for ever", async () => {
  const { strip, windowId, pushes, flush, id } = make();
  await flush();
  for (let n = 0; n < 20; n++) {
    strip.openTab(windowId, 3 + n);
  }
  strip.deliver();
  await vi.advanceTimersByTimeAsync(100);
  expect(pushes).toHaveLength(2);
  const start = performance.now();
  for (let n = 0; pushes.length < 3; n++) {
    strip.show(id(1 + (n % 2)));
    strip.deliver();
    await vi.advanceTimersByTimeAsync(50);
  }
  expect(performance.now() - start).toBeLessThanOrEqual(300);
});

test("500 tabs opened over two seconds are a few pushes, each of what is new, and are not all read each time", async () => {
  const { strip, windowId, pushes, flush } = make(1000);
  await flush();
  Object.assign(strip.asked, { lists: 0, listed: 0, tabs: 0 });
  for (let n = 0; n < 500; n++) {
    const id = strip.openTab(windowId, 1000 + n);
    strip.change(id, { url: `https://${n}.test/`, pendingUrl: "" });
    strip.change(id, { title: `Number ${n}` });
    strip.change(id, { loading: false });
    strip.deliver();
    await vi.advanceTimersByTimeAsync(4);
  }
  await vi.advanceTimersByTimeAsync(3000);
  const floods = pushes.slice(1);
  expect(floods.length).toBeGreaterThan(4);
  expect(floods.length).toBeLessThan(20);
  expect(new Set(floods.flatMap(({ change }) => change.tabs.map(({ tab }) => tab.id))).size).toBe(500);
  expect(floods.reduce((sum, { change }) => sum + change.tabs.length, 0)).toBeLessThan(1000);
  expect(strip.asked.lists).toBe(0);
  expect(strip.asked.tabs).toBeLessThan(1200);
});

test("a page that changes its title with each frame is told of less and less often, its last title is, and others are at once", async () => {
  const { strip, pushes, flush, id } = make();
  await flush();
  for (let frame = 0; frame < 60 * 20; frame++) {
    strip.change(id(0), { title: `Frame ${frame}` });
    strip.deliver();
    await vi.advanceTimersByTimeAsync(1000 / 60);
    if (frame === 900) {
      strip.change(id(1), { title: "Another" });
      strip.deliver();
      await vi.advanceTimersByTimeAsync(100);
      expect(pushes.at(-1)?.change.tabs).toMatchObject([{ tab: { title: "Another" } }]);
    }
  }
  await vi.advanceTimersByTimeAsync(2000);
  expect(pushes.length).toBeLessThan(20);
  expect(pushes.at(-1)?.change.tabs).toMatchObject([{ tab: { title: "Frame 1199" } }]);
  // What has calmed down is as quick as ever.
  await vi.advanceTimersByTimeAsync(5000);
  const calm = pushes.length;
  strip.change(id(0), { title: "Calm" });
  strip.deliver();
  await vi.advanceTimersByTimeAsync(100);
  expect(pushes).toHaveLength(calm + 1);
});

test("what is told of later is told of at once when a command ends", async () => {
  const { strip, flush, id } = make();
  await flush();
  for (let n = 0; n < 10; n++) {
    strip.change(id(0), { audible: n % 2 === 0 });
    await flush();
  }
  strip.change(id(0), { title: "last" });
  expect((await flush()).change.tabs).toMatchObject([{ tab: { title: "last" } }]);
});

test("in a window of 2,000 tabs the first one closes, another one is shown and one is moved without a list of them all", async () => {
  const { strip, windowId, flush, id } = make(2000);
  await flush();
  Object.assign(strip.asked, { lists: 0, listed: 0, tabs: 0 });
  strip.show(id(1000));
  const shown = await flush();
  expect(named(shown)).toEqual([
    [0, id(0)],
    [1000, id(1000)],
  ]);
  const first = id(0);
  strip.close(first);
  expect(await flush()).toMatchObject({ change: { tabs: [], removed: { tabs: [first] } } });
  const moved = id(1998);
  strip.move(moved, windowId, 5);
  expect(named(await flush())).toEqual([[5, moved]]);
  const opened = strip.openTab(windowId, 0);
  expect(named(await flush())).toEqual([[0, opened]]);
  expect(strip.asked.lists).toBe(0);
  expect(strip.asked.tabs).toBeLessThan(20);
});

test("places that do not fit what the events told are read again", async () => {
  const { strip, collector, pushes, flush, id } = make(2000);
  await flush();
  strip.asked.lists = 0;
  const [first, second] = [id(5), id(6)];
  // As if the event of the one had got lost.
  strip.close(first);
  strip.close(second);
  collector.changed({ kind: "removed", id: second });
  await collector.flush();
  expect(pushes.at(-1)?.change.removed.tabs).toEqual([first, second]);
  expect(strip.asked.lists).toBeGreaterThan(0);
  expect(pushes.at(-1)?.change.tabs).toEqual([]);
});

test("what nobody took is sent whole the next time; one that needs everything gets it at once", async () => {
  const { strip, windowId, pushes, flush, answer } = make();
  answer(undefined);
  await flush();
  expect(await flush()).toMatchObject({ full: true, number: 2 });
  answer(true);
  await flush();
  strip.openTab(windowId, 0);
  answer(false);
  expect(await flush()).toMatchObject({ full: false });
  answer(true);
  await vi.advanceTimersByTimeAsync(500);
  expect(pushes.map(({ full }) => full)).toEqual([true, true, true, false, true]);
});

test("a reading that fails is made again, and nothing is lost by it", async () => {
  const { strip, windowId, pushes, flush } = make();
  await flush();
  const id = strip.openTab(windowId, 1);
  strip.busy = 3;
  strip.deliver();
  await vi.advanceTimersByTimeAsync(100);
  expect(pushes).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1000);
  expect(named(pushes.at(-1))).toEqual([[1, id]]);
});

test("a tab that goes somewhere and does not get there is told of as what it shows, without an event", async () => {
  const { strip, pushes, flush, id } = make();
  await vi.advanceTimersByTimeAsync(0);
  Object.assign(strip.tab(id(0)), { url: "https://shown.test/", pendingUrl: "https://download.test/" });
  const all = await flush();
  expect(all.change.tabs.find(({ tab }) => tab.id === id(0))?.tab.url).toBe("https://download.test/");
  Object.assign(strip.tab(id(0)), { pendingUrl: "" });
  await vi.advanceTimersByTimeAsync(5000);
  expect(pushes.at(-1)?.change.tabs).toMatchObject([{ tab: { id: id(0), url: "https://shown.test/" } }]);
  // One that never gets anywhere does not keep the worker awake.
  strip.change(id(1), { pendingUrl: "https://hangs.test/" });
  await flush();
  await vi.advanceTimersByTimeAsync(120_000);
  const { tabs } = strip.asked;
  await vi.advanceTimersByTimeAsync(600_000);
  expect(strip.asked.tabs).toBe(tabs);
});

test("a tab that was put to sleep has another id, however often within one push, and is no other tab", async () => {
  const { strip, flush, id, known } = make();
  await flush();
  const a = id(0);
  const b = strip.replace(a);
  const c = strip.replace(b);
  const chain = await flush();
  expect(chain.change).toMatchObject({ replaced: [[a, c]], removed: { tabs: [] } });
  expect(chain.change.tabs).toMatchObject([{ index: 0, tab: { id: c, discarded: true } }]);
  const d = strip.replace(c);
  strip.close(d);
  expect((await flush()).change).toMatchObject({ replaced: [], removed: { tabs: [c] }, tabs: [] });
  known.push([a, id(0)], [b, 1], [id(0), id(1)]);
  const { strip: again, flush: all, known: old } = make();
  old.push([1, again.all()[0]?.id ?? 0], [2, 3]);
  expect((await all()).change.replaced).toEqual([[1, again.all()[0]?.id]]);
});

test("a tab is replaced while it is read, and still told of as the same one", async () => {
  const { strip, flush, id, pushes } = make();
  await flush();
  const old = id(1);
  let now = 0;
  strip.change(old, { title: "Changed" });
  strip.meanwhile = () => {
    if (now === 0) {
      now = strip.replace(old);
      strip.deliver();
    }
  };
  await flush();
  strip.meanwhile = () => {};
  await flush();
  const told = pushes.slice(1);
  expect(told.flatMap(({ change }) => change.replaced)).toEqual([[old, now]]);
  expect(told.flatMap(({ change }) => change.removed.tabs)).toEqual([]);
});

const info = (more: Partial<TabInfo>): TabInfo => ({
  id: 1,
  windowId: 2,
  groupId: undefined,
  index: 0,
  url: "",
  pendingUrl: "",
  title: "",
  active: false,
  pinned: false,
  muted: false,
  audible: false,
  discarded: false,
  loading: false,
  private: false,
  ...more,
});

test("a tab that loads carries the address it goes to; one with neither has none", () => {
  expect(plainTab(info({ pendingUrl: "https://b.test/" })).url).toBe("https://b.test/");
  expect(plainTab(info({ url: "https://a.test/", pendingUrl: "https://b.test/" })).url).toBe("https://b.test/");
  expect(plainTab(info({})).url).toBe("");
});

test.each([
  ["https://me:secret@a.test/x?y=z@1#@", "https://a.test/x?y=z@1#@"],
  ["http://me@a.test:8080/", "http://a.test:8080/"],
  ["view-source:https://me:secret@a.test/", "view-source:https://a.test/"],
  ["https://a.test/@me", "https://a.test/@me"],
  ["https://a.test?q=x@y", "https://a.test?q=x@y"],
  ["mailto:me@a.test", "mailto:me@a.test"],
  ["data:text/html,https://me:secret@a.test/", "data:text/html,https://me:secret@a.test/"],
  ["", ""],
])("%s leaves the browser as %s", (url, shown) => {
  expect(shownAddress(url)).toBe(shown);
});

test.each([
  ["https://a.test/", false],
  [`https://a.test/${"x".repeat(65_536 - 15)}`, false],
  [`https://a.test/${"x".repeat(65_536 - 14)}`, true],
  [`https://a.test/${"ä".repeat(40_000)}`, true],
  [`data:text/html,${"x".repeat(900)}`, false],
  [`data:text/html,${"x".repeat(2_097_152)}`, true],
])("an address that does not fit is cut and says so", (url, cut) => {
  const fits = fittingAddress(url);
  expect(isCut(fits)).toBe(cut);
  expect(new TextEncoder().encode(fits).length).toBeLessThanOrEqual(65_536);
  expect(cut ? url.startsWith(fits.slice(0, -1)) : fits === url).toBe(true);
});

test.each([
  ["short", 100, "short"],
  ["äöü", 5, "äö"],
  ["a😀b", 4, "a"],
  ["a\ud800b", 100, "a\ufffdb"],
])("%j is cut to %i bytes", (text, bytes, out) => {
  expect(clip(text, bytes)).toBe(out);
});
