import { expect, test } from "vitest";
import type { Change, PlainTab } from "../src/state/push.js";
import {
  apply,
  copyTable,
  difference,
  emptyTable,
  isEmpty,
  placed,
  putIn,
  type Table,
  takeOut,
} from "../src/state/table.js";
import { Random } from "./fake/random.js";

const tab = (id: number, windowId: number, url = ""): PlainTab => ({
  id,
  windowId,
  url,
  title: "",
  active: false,
  pinned: false,
  muted: false,
  audible: false,
  discarded: false,
  private: false,
});

function window(...ids: number[]): Table {
  const table = emptyTable();
  for (const [index, id] of ids.entries()) {
    table.tabs.set(id, tab(id, 1));
    putIn(table.order, 1, index, id);
  }
  return table;
}

const places = (change: Change) => change.tabs.map(({ index, tab: { id } }) => [index, id]);

test.each([
  ["the first one closes", [1, 2, 3, 4], [2, 3, 4], [], [1]],
  ["one comes to the front", [1, 2, 3], [9, 1, 2, 3], [[0, 9]], []],
  ["one goes to the end", [1, 2, 3, 4], [2, 3, 4, 1], [[3, 1]], []],
  ["one goes to the front", [1, 2, 3, 4], [4, 1, 2, 3], [[0, 4]], []],
  ["two change places", [1, 2, 3, 4], [1, 3, 2, 4], [[1, 3]], []],
  [
    "all turn around",
    [1, 2, 3],
    [3, 2, 1],
    [
      [0, 3],
      [1, 2],
    ],
    [],
  ],
] as const)("only tabs that moved are named: %s", (_, before, after, named, removed) => {
  const change = difference(window(...before), window(...after), []);
  expect(places(change)).toHaveLength(named.length);
  expect(change.removed.tabs).toEqual(removed);
  const table = window(...before);
  apply(table, change);
  expect(table.order.get(1)).toEqual(after);
});

test("a replaced tab is a pair if one side is known and the other is open; else a tab that is gone, or a new one", () => {
  const pair = difference(window(1, 2), window(3, 2), [[1, 3]]);
  expect([pair.replaced, pair.removed.tabs, places(pair)]).toEqual([[[1, 3]], [], [[0, 3]]]);
  const closed = difference(window(1, 2), window(2), [[1, 3]]);
  expect([closed.replaced, closed.removed.tabs]).toEqual([[], [1]]);
  const unknown = difference(window(2), window(3, 2), [[1, 3]]);
  expect([unknown.replaced, places(unknown)]).toEqual([[], [[0, 3]]]);
});

/** Another state of the same windows. */
function changed(base: Table, random: Random): Table {
  const table = copyTable(base);
  for (let n = random.below(8); n > 0; n--) {
    const id = random.below(12);
    const windowId = random.below(3);
    takeOut(table.order, new Set([id]));
    table.tabs.delete(id);
    if (random.below(3) > 0) {
      const known = base.tabs.get(id);
      const same = known?.windowId === windowId && random.below(2) === 0;
      table.tabs.set(id, same ? known : tab(id, windowId, String(random.below(3))));
      putIn(table.order, windowId, random.below((table.order.get(windowId)?.length ?? 0) + 1), id);
    }
  }
  return table;
}

const rows = (table: Table) =>
  placed(table)
    .map(({ index, tab: { id, windowId, url } }) => `${windowId} ${index} ${id} ${url}`)
    .sort();

test("the difference of two states makes one of the other, after a journey as JSON", () => {
  for (let seed = 0; seed < 3000; seed++) {
    const random = new Random(seed);
    const from = changed(changed(emptyTable(), random), random);
    const to = changed(from, random);
    const change = JSON.parse(JSON.stringify(difference(from, to, []))) as Change;
    const table = copyTable(from);
    apply(table, change);
    expect(rows(table), `seed ${seed}`).toEqual(rows(to));
    expect(isEmpty(difference(table, to, []))).toBe(true);
  }
});
