/** Notices what changes in the browser and hands it on, many changes at once. */
import type { BrowserChange, BrowserPort, TabInfo } from "../platform/port.js";
import { plainGroup, plainTab, plainWindow } from "./convert.js";
import { compositeId, type Identity } from "./identity.js";
import type { StatePush } from "./push.js";

/** Opening 20 tabs is 80 events. A change waits this long for others, and at most so long in all. */
const quietMs = 100;
const mostMs = 250;

export interface CollectorParts {
  readonly browser: BrowserPort;
  /** Undefined while the browser is not paired. */
  readonly identity: () => Promise<Identity | undefined>;
  /** False if nobody takes the state now. */
  readonly send: (push: StatePush) => Promise<boolean>;
}

export class Collector {
  readonly #parts: CollectorParts;
  readonly #tabs = new Set<number>();
  readonly #windows = new Set<number>();
  readonly #removed = new Set<number>();
  /** What an earlier worker had noticed and not handed on is not known, so the first push has everything. */
  #dirty = true;
  #all = true;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #since = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(parts: CollectorParts) {
    this.#parts = parts;
  }

  changed(change: BrowserChange): void {
    this.#note(change);
    this.#dirty = true;
    const now = performance.now();
    if (this.#timer === undefined) {
      this.#since = now;
    } else {
      clearTimeout(this.#timer);
    }
    const wait = Math.max(0, Math.min(quietMs, this.#since + mostMs - now));
    this.#timer = setTimeout(() => void this.flush(), wait);
  }

  #note(change: BrowserChange): void {
    switch (change.kind) {
      case "tab":
        this.#tabs.add(change.id);
        break;
      case "window":
        this.#windows.add(change.id);
        break;
      case "removed":
        this.#removed.add(change.id);
        break;
      case "replaced":
        this.#removed.add(change.id);
        this.#tabs.add(change.by);
        break;
      default: // windows and groups are always read
    }
  }

  /** Makes the next push have everything, and sends it soon. */
  everything(): void {
    this.#all = true;
    this.changed({ kind: "windows" });
  }

  /** Hands on what has changed so far. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending = this.#sending.then(() => this.#send()).catch(() => {});
    return this.#sending;
  }

  async #send(): Promise<void> {
    if (!this.#dirty) {
      return;
    }
    const identity = await this.#parts.identity();
    if (identity === undefined) {
      return;
    }
    const full = this.#all;
    const work = { tabs: [...this.#tabs], windows: [...this.#windows], removed: [...this.#removed] };
    this.#clear();
    const push = full ? await this.full(identity) : await this.#part(identity, work);
    if (!(await this.#parts.send(push))) {
      this.#all = true;
      this.#dirty = true;
    }
  }

  #clear(): void {
    this.#tabs.clear();
    this.#windows.clear();
    this.#removed.clear();
    this.#dirty = false;
    this.#all = false;
  }

  async full(identity: Identity): Promise<StatePush> {
    const { tabs, windows, groups } = this.#parts.browser;
    const [allTabs, allWindows, allGroups] = await Promise.all([tabs.list(), windows.list(), groups.list()]);
    return {
      full: true,
      tabs: allTabs.map((tab) => plainTab(identity, tab)),
      windows: allWindows.map((window) => plainWindow(identity, window)),
      groups: allGroups.map((group) => plainGroup(identity, group)),
      removed: [],
    };
  }

  async #part(
    identity: Identity,
    work: { readonly tabs: number[]; readonly windows: number[]; readonly removed: number[] },
  ): Promise<StatePush> {
    const { browser } = this.#parts;
    const [byWindow, allWindows, allGroups] = await Promise.all([
      // A window that closed meanwhile has no tabs any more.
      Promise.all(work.windows.map((id) => browser.tabs.list(id).catch((): TabInfo[] => []))),
      browser.windows.list(),
      browser.groups.list(),
    ]);
    const found = new Map(byWindow.flat().map((tab) => [tab.id, tab]));
    const removed = new Set(work.removed.filter((id) => !found.has(id)));
    const single = work.tabs.filter((id) => !found.has(id) && !removed.has(id));
    for (const [at, tab] of (await Promise.all(single.map((id) => browser.tabs.get(id)))).entries()) {
      const id = single[at];
      if (tab !== undefined) {
        found.set(tab.id, tab);
      } else if (id !== undefined) {
        removed.add(id);
      }
    }
    return {
      full: false,
      tabs: [...found.values()].map((tab) => plainTab(identity, tab)),
      windows: allWindows.map((window) => plainWindow(identity, window)),
      groups: allGroups.map((group) => plainGroup(identity, group)),
      removed: [...removed].map((id) => compositeId(identity, "tab", id)),
    };
  }
}
