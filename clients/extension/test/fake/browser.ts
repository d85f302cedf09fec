/** A browser as far as the port shows one. What it does is what Chromium was seen to do; semantics.ts holds both to it. */
import {
  type BrowserChange,
  BrowserError,
  type BrowserPort,
  type GroupColour,
  type GroupInfo,
  type GroupsPort,
  type NewTab,
  type TabChange,
  type TabInfo,
  type TabsPort,
  type WindowInfo,
  type WindowsPort,
} from "../../src/platform/port.js";

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export interface FakeTab extends Writable<TabInfo> {
  /** Its page asks the person before it goes away. */
  guarded: boolean;
  asked: boolean;
}

const clone = <T>(value: T): T => structuredClone(value);

const noTab = (id: number) => new BrowserError("noTab", `No tab with id: ${id}.`, id);

export class FakeBrowser implements BrowserPort {
  readonly windowList: Writable<WindowInfo>[] = [];
  readonly groupList: Writable<GroupInfo>[] = [];
  tabList: FakeTab[] = [];
  /** How many of the next calls find a tab that a person drags. */
  busy = 0;
  /** Ids that were asked to close, in order. */
  readonly removals: number[] = [];
  awakeCalls = 0;
  readonly #listeners = new Set<(change: BrowserChange) => void>();
  readonly #watchers: ((change: BrowserChange) => void)[] = [];
  readonly #askers: (() => void)[] = [];
  #nextId = 1000;
  #lastFocused: number | undefined;

  constructor(...urls: string[]) {
    const window = this.addWindow();
    for (const [index, url] of urls.entries()) {
      this.addTab(url, window, { active: index === 0 });
    }
  }

  addWindow(kind = "normal"): number {
    const id = this.#nextId++;
    for (const window of this.windowList) {
      window.focused = false;
    }
    this.windowList.push({ id, kind, focused: true, state: "normal", private: false });
    this.#lastFocused = id;
    this.#tell({ kind: "windows" });
    return id;
  }

  addTab(url: string, windowId = this.windowList[0]?.id ?? 0, more: Partial<FakeTab> = {}): FakeTab {
    const tab: FakeTab = {
      id: this.#nextId++,
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
      asked: false,
      ...more,
    };
    this.#insert(tab, Number.POSITIVE_INFINITY);
    this.#tell({ kind: "placed", id: tab.id, windowId, index: tab.index });
    return tab;
  }

  /** A window that a person opens behind the others. */
  openWindow(url: string, kind: "normal" | "popup"): FakeTab {
    const focused = this.#lastFocused;
    const tab = this.addTab(url, this.addWindow(kind), { active: true });
    if (focused !== undefined) {
      void this.windows.focus(focused);
    }
    return tab;
  }

  /** A person clicks into a page: from then on it may ask before it goes away. */
  click(id: number): void {
    const tab = this.tab(id);
    tab.guarded = tab.url.endsWith("/guard");
  }

  /** Resolves once a page asks. */
  asked(): Promise<void> {
    if (this.tabList.some(({ asked }) => asked)) {
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#askers.push(resolve));
  }

  /** What a person answers to all pages that ask. */
  answer(how: "leave" | "stay"): void {
    for (const tab of this.tabList.filter(({ asked }) => asked)) {
      tab.asked = false;
      if (how === "leave") {
        this.vanish(tab.id);
      }
    }
  }

  /** A person folds a group. */
  collapse(groupId: number): void {
    for (const group of this.groupList.filter(({ id }) => id === groupId)) {
      group.collapsed = true;
    }
    this.#tell({ kind: "groups" });
  }

  /** As onChange, but deafen does not end it. */
  watch(listener: (change: BrowserChange) => void): void {
    this.#watchers.push(listener);
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

  /** The browser puts a tab to sleep, which gives it another id. */
  discard(id: number): number {
    const tab = this.tab(id);
    tab.id = this.#nextId++;
    tab.discarded = true;
    this.#tell({ kind: "replaced", id, by: tab.id });
    return tab.id;
  }

  /** A person or the page closes a tab. */
  vanish(id: number): void {
    const { windowId, active, index } = this.tab(id);
    this.tabList = this.tabList.filter((tab) => tab.id !== id);
    this.#number(windowId);
    const next = active ? (this.in(windowId)[index] ?? this.in(windowId).at(-1)) : undefined;
    if (next !== undefined) {
      this.#activate(next);
    }
    this.#dropEmpty();
    this.#tell({ kind: "removed", id });
  }

  /** A worker that is stopped does not hear anything any more. */
  deafen(): void {
    this.#listeners.clear();
  }

  onChange(listener: (change: BrowserChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stayAwake(): Promise<void> {
    this.awakeCalls++;
    return Promise.resolve();
  }

  seesPrivate(): Promise<boolean> {
    return Promise.resolve(false);
  }

  #tell(change: BrowserChange): void {
    for (const listener of [...this.#watchers, ...this.#listeners]) {
      listener(change);
    }
  }

  /** Pinned tabs come first, whatever place is asked for. */
  #insert(tab: FakeTab, at: number): void {
    const others = this.in(tab.windowId).filter((each) => each !== tab);
    const pinned = others.filter((each) => each.pinned).length;
    const wanted = Math.max(0, Math.min(at, others.length));
    const place = tab.pinned ? Math.min(wanted, pinned) : Math.max(wanted, pinned);
    others.splice(place, 0, tab);
    this.tabList = [...this.tabList.filter((each) => each.windowId !== tab.windowId && each !== tab), ...others];
    this.#number(tab.windowId);
  }

  #number(windowId: number): void {
    for (const [index, tab] of this.in(windowId).entries()) {
      tab.index = index;
    }
  }

  #dropEmpty(): void {
    for (const { id } of [...this.windowList]) {
      if (this.in(id).length === 0) {
        this.windowList.splice(
          this.windowList.findIndex((window) => window.id === id),
          1,
        );
        this.#tell({ kind: "windows" });
      }
    }
    for (const { id } of [...this.groupList]) {
      if (!this.tabList.some((tab) => tab.groupId === id)) {
        this.groupList.splice(
          this.groupList.findIndex((group) => group.id === id),
          1,
        );
        this.#tell({ kind: "groups" });
      }
    }
  }

  #free(): void {
    if (this.busy > 0) {
      this.busy--;
      throw new BrowserError("busy", "Tabs cannot be edited right now (user may be dragging a tab).");
    }
  }

  #window(id: number): Writable<WindowInfo> {
    const window = this.windowList.find((each) => each.id === id);
    if (window === undefined) {
      throw new BrowserError("noWindow", `No window with id: ${id}.`, id);
    }
    return window;
  }

  async #create(wanted: NewTab): Promise<TabInfo> {
    const windowId = wanted.windowId ?? this.#lastFocused ?? 0;
    this.#window(windowId);
    const { url = "chrome://newtab/", active, pinned = false } = wanted;
    const tab = this.addTab("", windowId, { pendingUrl: url, title: "", pinned, loading: true });
    if (wanted.index !== undefined) {
      this.#insert(tab, wanted.index);
    }
    if (active) {
      this.#activate(tab);
    }
    const atOnce = clone(tab);
    tab.url = url;
    tab.pendingUrl = "";
    this.#tell({ kind: "tab", id: tab.id, loading: true });
    return atOnce;
  }

  #activate(tab: FakeTab): void {
    for (const other of this.in(tab.windowId)) {
      other.active = other === tab;
    }
    this.#tell({ kind: "shown", id: tab.id, windowId: tab.windowId });
  }

  async #update(id: number, change: TabChange): Promise<TabInfo> {
    this.#free();
    const tab = this.tab(id);
    if (change.active === true) {
      this.#activate(tab);
    }
    if (change.pinned !== undefined && this.#window(tab.windowId).kind === "normal") {
      tab.pinned = change.pinned;
      tab.groupId = change.pinned ? undefined : tab.groupId;
      this.#insert(tab, change.pinned ? Number.POSITIVE_INFINITY : 0);
      this.#dropEmpty();
    }
    tab.muted = change.muted ?? tab.muted;
    tab.pendingUrl = change.url ?? tab.pendingUrl;
    this.#tell({ kind: "tab", id, loading: change.url !== undefined });
    return clone(tab);
  }

  async #remove(ids: readonly number[]): Promise<void> {
    const waiting: number[] = [];
    this.#free();
    for (const id of ids) {
      const tab = this.tabList.find((each) => each.id === id);
      if (tab === undefined) {
        throw noTab(id);
      }
      this.removals.push(id);
      if (tab.guarded && !tab.asked) {
        tab.asked = true;
        this.#activate(tab);
        for (const asked of this.#askers.splice(0)) {
          asked();
        }
        waiting.push(id);
      } else {
        this.vanish(id);
      }
    }
    if (waiting.length > 0) {
      await new Promise(() => {});
    }
  }

  async #move(id: number, to: { readonly windowId?: number; readonly index: number }): Promise<TabInfo> {
    this.#free();
    const tab = this.tab(id);
    const from = tab.windowId;
    const windowId = to.windowId ?? from;
    if (this.#window(windowId).kind !== "normal" || this.#window(from).kind !== "normal") {
      throw new BrowserError("unsupportedWindow", "Tabs can only be moved to and from normal windows.");
    }
    tab.windowId = windowId;
    this.#insert(tab, to.index < 0 ? Number.POSITIVE_INFINITY : to.index);
    this.#number(from);
    this.#dropEmpty();
    this.#tell({ kind: "left", id });
    this.#tell({ kind: "placed", id, windowId, index: tab.index });
    return clone(tab);
  }

  async #group(ids: readonly number[], into: { groupId: number } | { windowId: number }): Promise<number> {
    this.#free();
    const tabs = ids.map((id) => this.tab(id));
    const existing = "groupId" in into ? this.groupList.find(({ id }) => id === into.groupId) : undefined;
    const windowId = existing?.windowId ?? ("windowId" in into ? into.windowId : (this.#lastFocused ?? 0));
    const id = existing?.id ?? this.#nextId++;
    if (existing === undefined) {
      this.groupList.push({ id, windowId, title: "", colour: "grey", collapsed: false });
    }
    for (const tab of tabs) {
      tab.pinned = false;
      tab.groupId = id;
      tab.windowId = windowId;
      this.#insert(tab, Number.POSITIVE_INFINITY);
    }
    this.#dropEmpty();
    this.#tell({ kind: "groups" });
    this.#tell({ kind: "window", id: windowId });
    return id;
  }

  readonly tabs: TabsPort = {
    list: async (windowId) => clone(windowId === undefined ? this.tabList : this.in(windowId)),
    get: async (id) => clone(this.tabList.find((tab) => tab.id === id)),
    create: (tab) => this.#create(tab),
    update: (id, change) => this.#update(id, change),
    remove: (ids) => this.#remove(ids),
    move: (id, to) => this.#move(id, to),
    reload: async (id) => {
      const tab = this.tab(id);
      if (!tab.guarded) {
        this.#tell({ kind: "tab", id, loading: true });
      }
    },
    group: (ids, into) => this.#group(ids, into),
    ungroup: async (ids) => {
      for (const id of ids) {
        this.tab(id).groupId = undefined;
        this.#tell({ kind: "tab", id, loading: false });
      }
      this.#dropEmpty();
    },
  };

  readonly windows: WindowsPort = {
    list: async () => clone(this.windowList),
    lastFocused: async () => this.#lastFocused,
    focus: async (id) => {
      this.#window(id);
      for (const window of this.windowList) {
        window.focused = window.id === id;
      }
      this.#lastFocused = id;
      this.#tell({ kind: "windows" });
    },
    create: async (url, focused = true) => {
      const tab = focused ? this.addTab(url, this.addWindow(), { active: true }) : this.openWindow(url, "normal");
      return clone(tab);
    },
  };

  readonly groups: GroupsPort = {
    list: async () => clone(this.groupList),
    update: async (id, change: { readonly title?: string; readonly colour?: GroupColour }) => {
      const group = this.groupList.find((each) => each.id === id);
      if (group === undefined) {
        throw new BrowserError("noGroup", `No group with id: ${id}.`, id);
      }
      Object.assign(group, change);
      this.#tell({ kind: "groups" });
    },
  };
}
