import { toBinary } from "@bufbuild/protobuf";
import { DeltaSchema, SnapshotSchema } from "@throwbar/es/pb/device";
import { expect, test } from "vitest";
import { Mirror, type StateFrame } from "../src/state/mirror.js";
import type { Change, PlacedTab, StatePush } from "../src/state/push.js";
import { identity, tabId, windowId } from "./fake/context.js";
import { StateServer } from "./fake/stateserver.js";

const nothing: Change = {
  tabs: [],
  windows: [],
  groups: [],
  removed: { tabs: [], windows: [], groups: [] },
  replaced: [],
};

const row = (id: number, index: number, more: Partial<PlacedTab["tab"]> = {}): PlacedTab => ({
  index,
  tab: {
    id,
    windowId: 1,
    url: `https://${id}.test/`,
    title: "",
    active: false,
    pinned: false,
    muted: false,
    audible: false,
    discarded: false,
    private: false,
    ...more,
  },
});

const push = (number: number, full: boolean, change: Partial<Change>, run = "first"): StatePush => ({
  identity,
  run,
  number,
  full,
  change: { ...nothing, ...change },
});

/** What a server makes of frames. */
function server(...frames: readonly StateFrame[]): StateServer {
  const made = new StateServer();
  for (const { case: kind, value } of frames) {
    expect(kind === "snapshot" ? made.snapshot(value) : made.delta(value)).toBeUndefined();
  }
  return made;
}

test("pushes become a snapshot and numbered deltas, and nothing is told twice", () => {
  const mirror = new Mirror();
  expect(mirror.has(identity)).toBe(false);
  expect(mirror.frames()).toEqual([]);
  const all = {
    tabs: [row(1, 0), row(2, 1)],
    windows: [{ id: 1, kind: "normal", focused: true, state: "", private: false }],
  };
  expect(mirror.take(push(1, true, all))).toEqual([]);
  const [snapshot] = mirror.frames();
  expect(snapshot).toMatchObject({ case: "snapshot", value: { sequence: 1n, chunk: 0, last: true } });
  expect(mirror.take(push(2, false, nothing))).toEqual([]);
  const [delta] = mirror.take(push(3, false, { removed: { tabs: [1], windows: [], groups: [] } })) ?? [];
  expect(delta).toMatchObject({ sequence: 2n, removed: [tabId(1)], tabs: [] });
  expect(mirror.take(push(1, true, { ...all, tabs: [row(2, 0)] }, "second"))).toEqual([]);
});

test("a new worker's reading is told as what it changes", () => {
  const mirror = new Mirror();
  mirror.take(push(1, true, { tabs: [row(1, 0), row(2, 1), row(3, 2)] }));
  const [delta] = mirror.take(push(1, true, { tabs: [row(9, 0), row(3, 1)], replaced: [[1, 9]] }, "second")) ?? [];
  expect(delta).toMatchObject({
    tabs: [{ tabId: tabId(9), index: 0 }],
    removed: [tabId(2)],
    replaced: [{ oldTabId: tabId(1), newTabId: tabId(9) }],
  });
});

test("a push that does not follow the last one is not taken, nor one of a worker that was stopped", () => {
  const mirror = new Mirror();
  expect(mirror.take(push(1, false, {}))).toBeUndefined();
  expect(mirror.take(push(1, true, {}))).toEqual([]);
  expect(mirror.take(push(3, false, {}))).toBeUndefined();
  expect(mirror.take(push(3, true, {}))).toEqual([]);
  expect(mirror.take(push(1, true, {}, "second"))).toEqual([]);
  expect(mirror.take(push(4, true, {}, "first"))).toBeUndefined();
  expect(mirror.take(push(2, false, {}, "second"))).toEqual([]);
});

test("replaced ids are told again after each snapshot, by the id that the tab has now, as long as it is open", () => {
  const mirror = new Mirror();
  mirror.take(push(1, true, { tabs: [row(2, 0), row(4, 1)], replaced: [[1, 2]] }));
  mirror.take(push(2, false, { tabs: [row(3, 0)], replaced: [[2, 3]] }));
  const told = () => {
    const last = mirror.frames().at(-1);
    return last?.case === "delta" ? last.value.replaced.map((each) => [each.oldTabId, each.newTabId]) : [];
  };
  expect(told()).toEqual([
    [tabId(1), tabId(3)],
    [tabId(2), tabId(3)],
  ]);
  expect(server(...mirror.frames()).replaced.get(tabId(1))).toBe(tabId(3));
  mirror.take(push(3, false, { removed: { tabs: [3], windows: [], groups: [] } }));
  expect(told()).toEqual([]);
});

test("the state of another pairing is not told of as a change", () => {
  const mirror = new Mirror();
  mirror.take(push(1, true, { tabs: [row(1, 0)] }));
  const other = { device: "dev2", boot: "boot" };
  expect(mirror.take({ ...push(2, true, { tabs: [row(2, 0)] }), identity: other })).toEqual([]);
  expect([mirror.has(identity), mirror.has(other)]).toEqual([false, true]);
});

const long = "x".repeat(60_000);

test("a large state is cut into messages that fit", () => {
  const mirror = new Mirror();
  mirror.take(
    push(1, true, { tabs: Array.from({ length: 200 }, (_, n) => row(n, n, { url: `https://a.test/${long}` })) }),
  );
  const frames = mirror.frames();
  expect(frames.length).toBeGreaterThan(10);
  for (const { case: kind, value } of frames) {
    expect(kind).toBe("snapshot");
    expect(toBinary(SnapshotSchema, value as never).length).toBeLessThan(1_100_000);
  }
  expect(server(...frames).order.get(windowId(1))).toHaveLength(200);
});

test("a large change is cut into messages that fit, and the tabs come to their places whatever else moved", () => {
  const mirror = new Mirror();
  const before = Array.from({ length: 120 }, (_, n) => n);
  mirror.take(push(1, true, { tabs: before.map((id, index) => row(id, index)) }));
  const view = server(...mirror.frames());
  // All change places, and most are large now.
  const after = [200, ...before.filter((id) => id % 7 > 0).reverse()];
  const tabs = after.map((id, index) => row(id, index, id % 5 === 0 ? {} : { url: `https://b.test/${long}` }));
  const removed = { tabs: before.filter((id) => id % 7 === 0), windows: [], groups: [] };
  const deltas = mirror.take(push(2, false, { tabs, removed })) ?? [];
  expect(deltas.length).toBeGreaterThan(3);
  for (const delta of deltas) {
    expect(toBinary(DeltaSchema, delta).length).toBeLessThan(1_100_000);
    expect(view.delta(delta)).toBeUndefined();
  }
  expect(view.order.get(windowId(1))).toEqual(after.map(tabId));
  expect(view.tabs.size).toBe(after.length);
});

test("the first of 2,000 tabs closes: the delta is a hundred bytes, not a row for each of the others", () => {
  const mirror = new Mirror();
  const title = "A title as pages mostly have them";
  const tabs = Array.from({ length: 2000 }, (_, n) =>
    row(1_000_000_000 + n, n, { url: `https://www.example.org/some/path/of/the/usual/length/${n}?and=more`, title }),
  );
  mirror.take(push(1, true, { tabs }));
  const frames = mirror.frames();
  const bytes = frames.map(({ case: kind, value }) =>
    kind === "snapshot" ? toBinary(SnapshotSchema, value).length : toBinary(DeltaSchema, value).length,
  );
  // What it would be if each tab were named.
  expect(bytes.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(250_000);
  const view = server(...frames);
  const [delta] = mirror.take(push(2, false, { removed: { tabs: [1_000_000_000], windows: [], groups: [] } })) ?? [];
  expect(delta && toBinary(DeltaSchema, delta).length).toBeLessThan(100);
  expect(delta && view.delta(delta)).toBeUndefined();
  expect(view.order.get(windowId(1))?.[0]).toBe(tabId(1_000_000_001));
});
