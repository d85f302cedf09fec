/** Windows, tabs and groups of the fake browser, and what a person and the browser itself do with them. */
import {
  type BrowserChange,
  BrowserError,
  type BrowserPort,
  type GroupInfo,
  groupColours,
  type TabInfo,
  type WindowInfo,
} from "../../src/platform/port.js";
import { placeAmong } from "./order.js";

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export interface FakeTab extends Writable<TabInfo> {
  /** Its page asks the person before it goes away. */
  guarded: boolean;
  /** When its page asked, by the clock of performance; undefined if it does not ask now. */
  askedAt: number | undefined;
  /** The tab whose page opened it. */
  openerId: number | undefined;
}

export const noTab = (id: number) => new BrowserError("noTab", `No tab with id: ${id}.`, id);

export const clone = <T>(value: T): T => structuredClone(value);

/** What one sees of a tab through the port. */
export function seen({ guarded: _, askedAt: __, openerId: ___, ...tab }: FakeTab): TabInfo {
  return clone(tab);
}

export class FakeModel {
  readonly windowList: Writable<WindowInfo>[] = [];
  readonly groupList: Writable<GroupInfo>[] = [];
  tabList: FakeTab[] = [];
  protected nextId = 1000;
  protected lastFocusedId: number | undefined;
  readonly #listeners = new Set<(change: BrowserChange) => void>();
  readonly #watchers: ((change: BrowserChange) => void)[] = [];
  readonly #askers: (() => void)[] = [];
  /** What happens once the person lets a tab go whose page asks, or it closes otherwise. */
  readonly #onLeave = new Map<FakeTab, () => void>();

  constructor(...urls: string[]) {
    const window = this.addWindow();
    for (const [index, url] of urls.entries()) {
      this.addTab(url, window, { active: index === 0 });
    }
  }

  addWindow(kind = "normal"): number {
    const id = this.nextId++;
    this.windowList.push({ id, kind, focused: false, state: "normal", private: false });
    this.tell({ kind: "windows" });
    this.focusWindow(id);
    return id;
  }

  addTab(url: string, windowId = this.windowList[0]?.id ?? 0, more: Partial<FakeTab> = {}): FakeTab {
    const tab: FakeTab = {
      id: this.nextId++,
      windowId,
      groupId: undefined,
      index: 0,
      url,
      pendingUrl: "",
      title: `Title of ${url}`,
      active: false,
      pinned: false,
      muted: false,
      audible: false,
      discarded: false,
      loading: false,
      private: false,
      guarded: false,
      askedAt: undefined,
      openerId: undefined,
      ...more,
    };
    this.insert(tab, more.index ?? Number.POSITIVE_INFINITY);
    this.tellPlace(tab);
    return tab;
  }

  /** A window that a person opens behind the others. */
  openWindow(url: string, kind: "normal" | "popup"): FakeTab {
    const focused = this.lastFocusedId;
    const tab = this.addTab(url, this.addWindow(kind), { active: true });
    if (focused !== undefined) {
      this.focusWindow(focused);
    }
    return tab;
  }

  tab(id: number): FakeTab {
    const tab = this.tabList.find((each) => each.id === id);
    if (tab === undefined) {
      throw noTab(id);
    }
    return tab;
  }

  in(windowId: number): FakeTab[] {
    return this.tabList.filter((tab) => tab.windowId === windowId);
  }

  urls(windowId = this.windowList[0]?.id ?? 0): string[] {
    return this.in(windowId).map(({ url }) => url);
  }

  window(id: number): Writable<WindowInfo> {
    const window = this.windowList.find((each) => each.id === id);
    if (window === undefined) {
      throw new BrowserError("noWindow", `No window with id: ${id}.`, id);
    }
    return window;
  }

  focusWindow(id: number): void {
    this.window(id);
    for (const window of this.windowList) {
      window.focused = window.id === id;
    }
    this.lastFocusedId = id;
    this.tell({ kind: "windows" });
  }

  /** The browser puts a tab to sleep, which gives it another id, and forgets its sound and where it was going. */
  discard(id: number): number {
    const tab = this.tab(id);
    if (tab.discarded) {
      throw new BrowserError("other", `Cannot discard tab with id: ${id}.`);
    }
    tab.id = this.nextId++;
    Object.assign(tab, { discarded: true, muted: false, pendingUrl: "", loading: false });
    Object.assign(tab, { guarded: false, askedAt: undefined });
    this.tell({ kind: "replaced", id, by: tab.id });
    this.tellTab(tab);
    return tab.id;
  }

  /** A person or the page closes a tab. */
  vanish(id: number): void {
    const tab = this.tab(id);
    const { windowId } = tab;
    this.leaveGroup(tab);
    this.tabList = this.tabList.filter((each) => each !== tab);
    this.number(windowId);
    this.tell({ kind: "removed", id });
    this.#activateNext(tab);
    this.dropEmptyWindow(windowId);
    this.#leave(tab);
  }

  /** A person closes a whole window. */
  closeWindow(windowId: number): void {
    const guarded = this.in(windowId).find((tab) => tab.guarded);
    if (guarded !== undefined) {
      guarded.guarded = false;
      this.ask(guarded, () => this.closeWindow(windowId));
      return;
    }
    for (const tab of this.in(windowId).reverse()) {
      this.leaveGroup(tab);
      this.tabList = this.tabList.filter((each) => each !== tab);
      this.tell({ kind: "removed", id: tab.id });
    }
    this.dropEmptyWindow(windowId);
  }

  /** A person clicks into a page: from then on it may ask before it goes away. Other pages do what their address says. */
  click(id: number): void {
    const tab = this.tab(id);
    if (tab.url.endsWith("/guard")) {
      tab.guarded = true;
    } else if (tab.url.endsWith("/opens")) {
      this.activate(tab);
      this.activate(this.addTab("http://opened.test/", tab.windowId, { index: tab.index + 1, openerId: id }));
    } else if (tab.url.endsWith("/pushes")) {
      tab.url = tab.url.replace("/pushes", "/pushed");
      this.tellTab(tab, { loading: true, page: true });
      this.tellTab(tab);
    }
  }

  /** Resolves once a page asks. */
  asked(): Promise<void> {
    if (this.tabList.some(({ askedAt }) => askedAt !== undefined)) {
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#askers.push(resolve));
  }

  /** The page asks the person, who sees it: the tab comes to the front of its window. */
  protected ask(tab: FakeTab, onLeave: () => void): void {
    tab.askedAt = performance.now();
    this.#onLeave.set(tab, onLeave);
    this.activate(tab);
    for (const asked of this.#askers.splice(0)) {
      asked();
    }
  }

  /** What a person answers to all pages that ask. */
  answer(how: "leave" | "stay"): void {
    for (const tab of this.tabList.filter(({ askedAt }) => askedAt !== undefined)) {
      tab.askedAt = undefined;
      if (how === "leave") {
        this.#leave(tab);
      } else {
        // Where it was to go is forgotten without an event.
        Object.assign(tab, { pendingUrl: "", loading: false });
      }
      this.#onLeave.delete(tab);
    }
  }

  #leave(tab: FakeTab): void {
    const leave = this.#onLeave.get(tab);
    this.#onLeave.delete(tab);
    leave?.();
  }

  /** A person folds a group. */
  collapse(groupId: number, collapsed = true): void {
    for (const group of this.groupList.filter(({ id }) => id === groupId)) {
      group.collapsed = collapsed;
      this.tell({ kind: "groups" });
    }
  }

  /** A worker that is stopped does not hear anything any more. */
  deafen(): void {
    this.#listeners.clear();
  }

  /** A value, so that a port that wraps this one can take it over. */
  onChange: BrowserPort["onChange"] = (listener) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** As onChange, but deafen does not end it. */
  watch(listener: (change: BrowserChange) => void): void {
    this.#watchers.push(listener);
  }

  protected tell(change: BrowserChange): void {
    for (const listener of [...this.#watchers, ...this.#listeners]) {
      listener(change);
    }
  }

  /** Puts a tab at a place of its window, as near as pinned tabs allow. */
  protected insert(tab: FakeTab, at: number): void {
    const others = this.in(tab.windowId).filter((each) => each !== tab);
    others.splice(placeAmong(others, tab, at), 0, tab);
    this.arrange(tab.windowId, others);
  }

  /** Gives the tabs of a window a new order, and tells of those that were moved for it. */
  protected arrange(windowId: number, strip: readonly FakeTab[], moved: Iterable<FakeTab> = []): void {
    const before = new Map(this.in(windowId).map((tab) => [tab, tab.index]));
    this.tabList = [...this.tabList.filter((each) => each.windowId !== windowId), ...strip];
    this.number(windowId);
    for (const tab of moved) {
      if (before.get(tab) !== tab.index) {
        this.tellPlace(tab);
      }
    }
  }

  protected tellPlace({ id, windowId, index }: FakeTab): void {
    this.tell({ kind: "placed", id, windowId, index });
  }

  /** page: it has another address or title. */
  protected tellTab({ id }: FakeTab, { loading = false, page = false } = {}): void {
    this.tell({ kind: "tab", id, loading, page });
  }

  protected number(windowId: number): void {
    for (const [index, tab] of this.in(windowId).entries()) {
      tab.index = index;
    }
  }

  /** A folded group unfolds for a tab that is shown. */
  protected activate(tab: FakeTab): void {
    if (tab.active) {
      return;
    }
    const group = this.groupList.find(({ id }) => id === tab.groupId);
    if (group?.collapsed) {
      this.collapse(group.id, false);
    }
    for (const other of this.in(tab.windowId)) {
      other.active = other === tab;
    }
    this.tell({ kind: "shown", id: tab.id, windowId: tab.windowId });
  }

  /** The tab that comes to the front when one that was there is gone: the one that opened it, or its neighbour. */
  #activateNext({ windowId, active, index, openerId }: FakeTab): void {
    const rest = this.in(windowId);
    const next = rest.find(({ id }) => id === openerId) ?? rest[index] ?? rest.at(-1);
    if (active && next !== undefined) {
      this.activate(next);
    }
  }

  /** Takes a tab out of its window; the next one comes to the front. */
  protected detach(tab: FakeTab): void {
    const { windowId } = tab;
    this.leaveGroup(tab);
    this.tabList = this.tabList.filter((each) => each !== tab);
    this.number(windowId);
    this.#activateNext(tab);
    tab.active = false;
    this.tell({ kind: "left", id: tab.id });
  }

  /** The browser removes a group with its last tab. */
  protected leaveGroup(tab: FakeTab): void {
    const { groupId } = tab;
    if (groupId !== undefined) {
      tab.groupId = undefined;
      this.tellTab(tab);
      this.dropEmptyGroups();
    }
  }

  protected dropEmptyGroups(): void {
    for (const group of [...this.groupList]) {
      if (!this.tabList.some(({ groupId }) => groupId === group.id)) {
        this.groupList.splice(this.groupList.indexOf(group), 1);
        this.tell({ kind: "groups" });
      }
    }
  }

  protected dropEmptyWindow(windowId: number): void {
    const window = this.windowList.find(({ id }) => id === windowId);
    if (window === undefined || this.in(windowId).length > 0) {
      return;
    }
    this.windowList.splice(this.windowList.indexOf(window), 1);
    if (this.lastFocusedId === windowId) {
      this.lastFocusedId = this.windowList.at(-1)?.id;
    }
    this.tell({ kind: "windows" });
  }

  /** A new group has the colour that the fewest of its window have. */
  protected addGroup(windowId: number): number {
    const id = this.nextId++;
    const used = this.groupList.filter((group) => group.windowId === windowId).map(({ colour }) => colour);
    const count = (colour: string) => used.filter((each) => each === colour).length;
    const [colour = "grey"] = [...groupColours].sort((a, b) => count(a) - count(b));
    this.groupList.push({ id, windowId, title: "", colour, collapsed: false });
    return id;
  }
}
