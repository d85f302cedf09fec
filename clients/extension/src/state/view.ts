/** What the browser has, kept by what it says of each change and read again where that may be wrong. */
import type { BrowserChange, BrowserPort, TabInfo } from "../platform/port.js";
import { plainGroup, plainTab, plainWindow } from "./convert.js";
import type { PlainTab } from "./push.js";
import { emptyTable, putIn, same, type Table, takeOut } from "./table.js";

/** What has to be read again. */
export interface Work {
  readonly tabs: Set<number>;
  /** Windows whose tabs have other places. */
  readonly shifted: Set<number>;
  /** Windows of which another tab is shown. */
  readonly shown: Set<number>;
  /** Windows all of whose tabs may be different. */
  readonly windows: Set<number>;
}

export const noWork = (): Work => ({
  tabs: new Set(),
  shifted: new Set(),
  shown: new Set(),
  windows: new Set(),
});

/** From so many tabs on that are more than a third of all, one call for all of them costs less than one for each. */
const fewTabs = 32;
/**
 * A window with so many tabs is read whole when one comes, goes or moves, which takes Chromium 35 µs for each. In a larger one
 * the places follow from the events, and are compared with those of the tabs that are read and of the last one. That could be
 * wrong if events came much later than answers; it is put right when everything is read again.
 */
const fewInWindow = 150;

export class View {
  readonly table: Table = emptyTable();
  /**
   * Tabs that were on their way to another address, and how often they were seen so. No event tells that one starts for
   * it, nor that it does not get there, as with a download.
   */
  readonly pending = new Map<number, number>();
  readonly #browser: BrowserPort;
  /** The tabs that are being read. */
  #reading: ReadonlySet<number> | undefined;

  constructor(browser: BrowserPort) {
    this.#browser = browser;
  }

  /**
   * Follows a change as far as its event tells, and notes what has to be read. Events may come late, when what was read has the
   * change already: so each one that moves tabs notes something whose reading shows whether all have the right place.
   */
  note(change: BrowserChange, work: Work): void {
    switch (change.kind) {
      case "tab":
        work.tabs.add(change.id);
        break;
      case "placed":
        this.#leave(change.id, work);
        putIn(this.table.order, change.windowId, change.index, change.id);
        work.shifted.add(change.windowId);
        work.tabs.add(change.id);
        break;
      case "left":
        this.#leave(change.id, work);
        work.tabs.add(change.id);
        break;
      case "shown":
        work.shown.add(change.windowId);
        work.tabs.add(change.id);
        break;
      case "removed":
        this.#leave(change.id, work);
        this.table.tabs.delete(change.id);
        this.#gone(change.id, work);
        break;
      case "replaced":
        this.#rename(change.id, change.by);
        this.#gone(change.id, work);
        work.tabs.add(change.by);
        break;
      case "window":
        work.windows.add(change.id);
        break;
      default: // windows and groups are always read
    }
  }

  #leave(id: number, work: Work): void {
    // A place that is read before this and compared after it may fit by chance.
    for (const read of this.#reading ?? []) {
      work.tabs.add(read);
    }
    for (const [windowId, list] of this.table.order) {
      if (list.includes(id)) {
        work.shifted.add(windowId);
      }
    }
    takeOut(this.table.order, new Set([id]));
  }

  /** What is being read may have the tab still. */
  #gone(id: number, work: Work): void {
    if (this.#reading !== undefined) {
      work.tabs.add(id);
    }
  }

  #rename(old: number, now: number): void {
    const { tabs, order } = this.table;
    for (const list of order.values()) {
      const at = list.indexOf(old);
      if (at >= 0) {
        list[at] = now;
      }
    }
    const row = tabs.get(old);
    tabs.delete(old);
    if (row !== undefined && !tabs.has(now)) {
      tabs.set(now, { ...row, id: now });
    }
  }

  /** Reads what is noted, or everything. */
  async read(work: Work, everything: boolean): Promise<void> {
    const { windows, groups } = this.#browser;
    const all = everything || (work.tabs.size > fewTabs && work.tabs.size * 3 > this.table.tabs.size);
    this.#reading = work.tabs;
    try {
      const [, allWindows, allGroups] = await Promise.all([
        all ? this.#readAll() : this.#readSome(work),
        windows.list(),
        groups.list(),
      ]);
      replaceRows(this.table.windows, allWindows.map(plainWindow));
      replaceRows(this.table.groups, allGroups.map(plainGroup));
    } finally {
      this.#reading = undefined;
    }
    // What was read of a tab that went meanwhile.
    const open = new Set([...this.table.order.values()].flat());
    for (const id of [...this.table.tabs.keys(), ...this.pending.keys()]) {
      if (!open.has(id)) {
        this.table.tabs.delete(id);
        this.pending.delete(id);
      }
    }
  }

  async #readAll(): Promise<void> {
    const tabs = await this.#browser.tabs.list();
    const { order } = this.table;
    order.clear();
    for (const { id, windowId } of [...tabs].sort((a, b) => a.index - b.index)) {
      putIn(order, windowId, Number.POSITIVE_INFINITY, id);
    }
    for (const tab of tabs) {
      this.#keep(tab);
    }
  }

  async #readSome({ tabs, shifted, shown, windows }: Work): Promise<void> {
    const { order } = this.table;
    // The tab that was shown is not told.
    const hidden = [...shown]
      .flatMap((windowId) => order.get(windowId) ?? [])
      .filter((id) => this.table.tabs.get(id)?.active === true);
    const wrong = new Set(windows);
    const lasts = [...shifted].flatMap((windowId) => {
      const list = order.get(windowId) ?? [];
      if (list.length <= fewInWindow) {
        wrong.add(windowId);
      }
      return wrong.has(windowId) ? [] : list.slice(-1);
    });
    const ids = [...new Set([...tabs, ...hidden, ...lasts])];
    const found = await Promise.all(ids.map((id) => this.#browser.tabs.get(id)));
    for (const [at, tab] of found.entries()) {
      const id = ids[at] ?? 0;
      if (tab === undefined) {
        takeOut(order, new Set([id]));
        this.table.tabs.delete(id);
      } else {
        this.#keep(tab);
        if (order.get(tab.windowId)?.[tab.index] !== id) {
          wrong.add(tab.windowId);
        }
      }
    }
    if (!(await this.#readWindows([...wrong]))) {
      await this.#readAll();
    }
  }

  /** False if a tab is in none of the windows any more, or in two: it goes from one to another while they are read. */
  async #readWindows(ids: readonly number[]): Promise<boolean> {
    const { order } = this.table;
    // A window that closed meanwhile has no tabs any more.
    const lists = await Promise.all(ids.map((id) => this.#browser.tabs.list(id).catch((): TabInfo[] => [])));
    const before = ids.flatMap((id) => order.get(id) ?? []);
    const tabs = lists.flat();
    takeOut(order, new Set([...before, ...tabs.map(({ id }) => id)]));
    for (const tab of [...tabs].sort((a, b) => a.index - b.index)) {
      this.#keep(tab);
      putIn(order, tab.windowId, Number.POSITIVE_INFINITY, tab.id);
    }
    const here = new Set(tabs.map(({ id }) => id));
    return here.size === tabs.length && before.every((id) => here.has(id));
  }

  /** Rows that are the same stay the same object, which makes comparing cheap. */
  #keep(tab: TabInfo): void {
    if (tab.pendingUrl === "") {
      this.pending.delete(tab.id);
    } else {
      this.pending.set(tab.id, (this.pending.get(tab.id) ?? 0) + 1);
    }
    const row = plainTab(tab);
    if (!same<PlainTab>(this.table.tabs.get(tab.id), row)) {
      this.table.tabs.set(tab.id, row);
    }
  }
}

function replaceRows<T extends { readonly id: number }>(into: Map<number, T>, rows: readonly T[]): void {
  const before = new Map(into);
  into.clear();
  for (const row of rows) {
    const known = before.get(row.id);
    into.set(row.id, known !== undefined && same(known, row) ? known : row);
  }
}
