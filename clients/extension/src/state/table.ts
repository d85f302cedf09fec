/** Tabs, windows and groups by the browser's ids, and how one state of them becomes another. */
import type { Change, PlacedTab, PlainGroup, PlainTab, PlainWindow, Replaced } from "./push.js";

export interface Table {
  readonly tabs: Map<number, PlainTab>;
  /** The tabs of each window, in order. */
  readonly order: Map<number, number[]>;
  readonly windows: Map<number, PlainWindow>;
  readonly groups: Map<number, PlainGroup>;
}

export const emptyTable = (): Table => ({ tabs: new Map(), order: new Map(), windows: new Map(), groups: new Map() });

/** A copy in which tabs and order fit. Tabs of which nothing but the place is known yet are not in it. */
export function copyTable({ tabs, order, windows, groups }: Table): Table {
  const copy: Table = { tabs: new Map(), order: new Map(), windows: new Map(windows), groups: new Map(groups) };
  for (const [windowId, list] of order) {
    const known = list.filter((id) => tabs.has(id));
    if (known.length > 0) {
      copy.order.set(windowId, known);
    }
    for (const id of known) {
      const tab = tabs.get(id);
      if (tab !== undefined) {
        copy.tabs.set(id, tab.windowId === windowId ? tab : { ...tab, windowId });
      }
    }
  }
  return copy;
}

export function same<T extends object>(a: T | undefined, b: T): boolean {
  return a === b || (a !== undefined && (Object.keys({ ...a, ...b }) as (keyof T)[]).every((key) => a[key] === b[key]));
}

/** Takes tabs out of the order of their windows. */
export function takeOut(order: Table["order"], ids: ReadonlySet<number>): void {
  for (const [windowId, list] of ids.size === 0 ? [] : order) {
    const left = list.some((id) => ids.has(id)) ? list.filter((id) => !ids.has(id)) : list;
    if (left.length === 0) {
      order.delete(windowId);
    } else if (left !== list) {
      order.set(windowId, left);
    }
  }
}

/** Puts a tab at a place of its window, or at its end if that has fewer tabs. */
export function putIn(order: Table["order"], windowId: number, index: number, id: number): void {
  const list = order.get(windowId);
  if (list === undefined) {
    order.set(windowId, [id]);
  } else {
    list.splice(index, 0, id);
  }
}

export function placed({ tabs, order }: Table, windowIds: Iterable<number> = order.keys()): PlacedTab[] {
  return [...windowIds].flatMap((windowId) =>
    (order.get(windowId) ?? []).flatMap((id, index) => {
      const tab = tabs.get(id);
      return tab === undefined ? [] : [{ index, tab }];
    }),
  );
}

/** Makes the change. */
export function apply(table: Table, { tabs, windows, groups, removed, replaced }: Change): void {
  const gone = [...removed.tabs, ...replaced.map(([old]) => old)];
  takeOut(table.order, new Set([...gone, ...tabs.map(({ tab }) => tab.id)]));
  for (const id of gone) {
    table.tabs.delete(id);
  }
  // From the front: the places before each one are as they will be.
  for (const { index, tab } of [...tabs].sort((a, b) => a.index - b.index)) {
    table.tabs.set(tab.id, tab);
    putIn(table.order, tab.windowId, index, tab.id);
  }
  merge(table.windows, windows, removed.windows);
  merge(table.groups, groups, removed.groups);
}

function merge<T extends { readonly id: number }>(
  into: Map<number, T>,
  rows: readonly T[],
  gone: readonly number[],
): void {
  for (const id of gone) {
    into.delete(id);
  }
  for (const row of rows) {
    into.set(row.id, row);
  }
}

/** The change that makes of one table the other. Of the replaced ids those count that the one has and the other has not. */
export function difference(from: Table, to: Table, replaced: readonly Replaced[]): Change {
  const pairs = replaced.filter(
    ([old, now]) => from.tabs.has(old) && !to.tabs.has(old) && to.tabs.has(now) && !from.tabs.has(now),
  );
  const old = new Set(pairs.map(([id]) => id));
  const rows = <T extends object>(a: Map<number, T>, b: Map<number, T>) => ({
    changed: [...b].flatMap(([id, row]) => (same(a.get(id), row) ? [] : [row])),
    removed: [...a.keys()].filter((id) => !b.has(id)),
  });
  const windows = rows(from.windows, to.windows);
  const groups = rows(from.groups, to.groups);
  return {
    tabs: [...to.order.keys()].flatMap((windowId) => named(from, to, windowId)),
    windows: windows.changed,
    groups: groups.changed,
    removed: {
      tabs: [...from.tabs.keys()].filter((id) => !to.tabs.has(id) && !old.has(id)),
      windows: windows.removed,
      groups: groups.removed,
    },
    replaced: pairs,
  };
}

export function isEmpty({ tabs, windows, groups, removed, replaced }: Change): boolean {
  return [tabs, windows, groups, removed.tabs, removed.windows, removed.groups, replaced].every(
    ({ length }) => length === 0,
  );
}

/** The tabs of a window that are different, or whose place does not follow from that of the others. */
function named(from: Table, to: Table, windowId: number): PlacedTab[] {
  const before = new Map((from.order.get(windowId) ?? []).map((id, index) => [id, index]));
  const tabs = placed(to, [windowId]);
  const places = tabs.map(({ tab }) => (same(from.tabs.get(tab.id), tab) ? before.get(tab.id) : undefined));
  const kept = longestRise(places);
  return tabs.filter((_, at) => !kept.has(at));
}

/** Where the longest run of rising numbers is. */
function longestRise(numbers: readonly (number | undefined)[]): Set<number> {
  /** For each length, the position of the lowest number that ends a run of it. */
  const ends: number[] = [];
  const back: (number | undefined)[] = [];
  for (const [at, number] of numbers.entries()) {
    if (number === undefined) {
      continue;
    }
    let low = 0;
    for (let high = ends.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((numbers[ends[middle] ?? 0] ?? 0) < number) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    back[at] = ends[low - 1];
    ends[low] = at;
  }
  const found = new Set<number>();
  for (let at = ends.at(-1); at !== undefined; at = back[at]) {
    found.add(at);
  }
  return found;
}
