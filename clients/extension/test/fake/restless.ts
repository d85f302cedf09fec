/**
 * A browser whose tabs change by themselves, for tests of state. Its events come as Chromium's do: each tells of its own change
 * only, and later, when more may have changed already. It counts what it is asked.
 */
import type { BrowserChange, BrowserPort, GroupInfo, TabInfo, WindowInfo } from "../../src/platform/port.js";
import type { Random } from "./random.js";

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const notHere = (): never => {
  throw new Error("nothing is done to this browser");
};

export class Restless implements BrowserPort {
  readonly windowList: Writable<WindowInfo>[] = [];
  readonly groupList: Writable<GroupInfo>[] = [];
  readonly lists = new Map<number, Writable<TabInfo>[]>();
  /** How often it was asked for lists of tabs, how many tabs were in those, and how often for one tab. */
  readonly asked = { lists: 0, listed: 0, tabs: 0 };
  /** Makes the next calls fail, as while a person drags a tab. */
  busy = 0;
  /** Whether the browser shows private windows to the extension. */
  showsPrivate = false;
  /** Runs in the middle of each call. */
  meanwhile: () => void | Promise<void> = () => {};
  readonly #listeners = new Set<(change: BrowserChange) => void>();
  #waiting: BrowserChange[] = [];
  /** Old ids of tabs, each with the one that came next. */
  readonly replacedBy = new Map<number, number>();
  #nextId = 1000;

  // What happens in it.

  openWindow(hidden = false): number {
    const id = this.#nextId++;
    for (const window of this.windowList) {
      window.focused = false;
    }
    this.windowList.push({ id, kind: "normal", focused: true, state: "normal", private: hidden });
    this.lists.set(id, []);
    this.#tell({ kind: "windows" });
    this.openTab(id, 0);
    return id;
  }

  openTab(windowId: number, index: number, more: Partial<TabInfo> = {}): number {
    const id = this.#nextId++;
    const list = this.#list(windowId);
    const tab = {
      id,
      windowId,
      groupId: undefined,
      index,
      url: "",
      pendingUrl: `https://${id}.test/`,
      title: "",
      active: list.length === 0,
      pinned: false,
      muted: false,
      audible: false,
      discarded: false,
      loading: true,
      private: this.windowList.some((window) => window.id === windowId && window.private),
      ...more,
    };
    list.splice(index, 0, tab);
    this.#number(windowId);
    this.#tell({ kind: "placed", id, windowId, index: tab.index });
    return id;
  }

  /** Many tabs in one window, as a session that was restored has them. */
  fill(windowId: number, count: number): number[] {
    return Array.from({ length: count }, (_, n) =>
      this.openTab(windowId, Number.POSITIVE_INFINITY, {
        url: `https://www.example.org/page/${n}`,
        title: `Page ${n}`,
        pendingUrl: "",
      }),
    );
  }

  change(id: number, to: Partial<Omit<TabInfo, "id" | "windowId" | "index">>): void {
    Object.assign(this.tab(id), to);
    this.#tell({ kind: "tab", id, loading: to.loading === true });
  }

  show(id: number): void {
    const { windowId } = this.tab(id);
    for (const tab of this.#list(windowId)) {
      tab.active = tab.id === id;
    }
    this.#tell({ kind: "shown", id, windowId });
  }

  move(id: number, windowId: number, index: number): void {
    const tab = this.tab(id);
    const from = tab.windowId;
    this.#drop(id);
    if (from !== windowId) {
      this.#tell({ kind: "left", id });
      tab.active = false;
    }
    tab.windowId = windowId;
    this.#list(windowId).splice(index, 0, tab);
    this.#number(windowId);
    this.#tell({ kind: "placed", id, windowId, index: tab.index });
    this.#closeIfEmpty(from);
  }

  close(id: number): void {
    const { windowId } = this.tab(id);
    this.#drop(id);
    this.#tell({ kind: "removed", id });
    this.#closeIfEmpty(windowId);
  }

  /** The browser gives a tab another id. */
  replace(id: number): number {
    const tab = this.tab(id);
    tab.id = this.#nextId++;
    tab.discarded = true;
    this.replacedBy.set(id, tab.id);
    this.#tell({ kind: "replaced", id, by: tab.id });
    return tab.id;
  }

  group(ids: readonly number[]): void {
    const id = this.#nextId++;
    const { windowId } = this.tab(ids[0] ?? 0);
    this.groupList.push({ id, windowId, title: `Group ${id}`, colour: "blue", collapsed: false });
    this.#tell({ kind: "groups" });
    for (const tab of ids) {
      this.change(tab, { groupId: id });
    }
  }

  focus(id: number): void {
    for (const window of this.windowList) {
      window.focused = window.id === id;
    }
    this.#tell({ kind: "windows" });
  }

  changed(): void {
    this.#tell({ kind: "groups" });
  }

  /** Hands over events that happened; all of them, or so many. */
  deliver(count = Number.POSITIVE_INFINITY): void {
    for (const change of this.#waiting.splice(0, count)) {
      for (const listener of [...this.#listeners]) {
        listener(change);
      }
    }
  }

  /** The worker was stopped: what was not handed over never is. */
  deafen(): void {
    this.#listeners.clear();
    this.#waiting = [];
  }

  /** Anything. */
  act(random: Random): void {
    const windows = this.windowList.map(({ id }) => id);
    const tabs = this.all();
    const tab = random.pick(tabs)?.id ?? 0;
    const windowId = random.pick(windows) ?? 0;
    const place = random.below(this.#list(windowId).length + 1);
    random.run(
      [3, () => this.openTab(windowId, place)],
      [2, () => tabs.length > 3 && this.close(tab)],
      [3, () => this.move(tab, windowId, place)],
      [2, () => this.show(tab)],
      [
        3,
        () =>
          this.change(tab, {
            url: `https://${random.below(9)}.test/`,
            pendingUrl: "",
            title: `T${random.below(99)}`,
            loading: false,
          }),
      ],
      [1, () => this.change(tab, { muted: random.below(2) === 0 })],
      [2, () => this.replace(tab)],
      [1, () => this.replace(this.replace(tab))],
      [1, () => this.close(this.replace(tab)), () => tabs.length > 3],
      [1, () => this.group([tab])],
      [1, () => windows.length < 4 && this.openWindow()],
      [1, () => this.focus(windowId)],
      [1, () => random.below(3) === 0 && this.#closeWindow(windowId)],
    );
  }

  /** All of its tabs, as far as enough are left. */
  #closeWindow(windowId: number): void {
    for (const { id } of [...this.#list(windowId)]) {
      if (this.all().length > 3) {
        this.close(id);
      }
    }
  }

  // What it says.

  all(): readonly TabInfo[] {
    return [...this.lists.values()].flat();
  }

  tab(id: number): Writable<TabInfo> {
    const found = [...this.lists.values()].flat().find((tab) => tab.id === id);
    if (found === undefined) {
      throw new Error(`no tab ${id}`);
    }
    return found;
  }

  #list(windowId: number): Writable<TabInfo>[] {
    const list = this.lists.get(windowId);
    if (list === undefined) {
      throw new Error(`no window ${windowId}`);
    }
    return list;
  }

  #drop(id: number): void {
    for (const [windowId, list] of this.lists) {
      const at = list.findIndex((tab) => tab.id === id);
      if (at >= 0) {
        list.splice(at, 1);
        this.#number(windowId);
      }
    }
  }

  #number(windowId: number): void {
    for (const [index, tab] of this.#list(windowId).entries()) {
      tab.index = index;
    }
  }

  #closeIfEmpty(windowId: number): void {
    if (this.#list(windowId).length === 0) {
      this.lists.delete(windowId);
      this.windowList.splice(
        this.windowList.findIndex(({ id }) => id === windowId),
        1,
      );
      this.#tell({ kind: "windows" });
    }
    const groups = new Set(this.all().map(({ groupId }) => groupId));
    if (this.groupList.some(({ id }) => !groups.has(id))) {
      this.groupList.splice(0, this.groupList.length, ...this.groupList.filter(({ id }) => groups.has(id)));
      this.#tell({ kind: "groups" });
    }
  }

  #tell(change: BrowserChange): void {
    this.#waiting.push(change);
  }

  async #answer<T>(read: () => T): Promise<T> {
    await this.meanwhile();
    if (this.busy > 0) {
      this.busy--;
      throw new Error("Tabs cannot be queried right now (user may be dragging a tab).");
    }
    const answer = structuredClone(read());
    await this.meanwhile();
    return answer;
  }

  readonly tabs: BrowserPort["tabs"] = {
    list: (windowId) =>
      this.#answer(() => {
        const found = windowId === undefined ? this.all() : (this.lists.get(windowId) ?? []);
        this.asked.lists++;
        this.asked.listed += found.length;
        return [...found];
      }),
    get: (id) =>
      this.#answer(() => {
        this.asked.tabs++;
        return this.all().find((tab) => tab.id === id);
      }),
    create: notHere,
    update: notHere,
    remove: notHere,
    move: notHere,
    reload: notHere,
    group: notHere,
    ungroup: notHere,
  };

  readonly windows: BrowserPort["windows"] = {
    list: () => this.#answer(() => this.windowList),
    lastFocused: async () => this.windowList.find(({ focused }) => focused)?.id,
    focus: notHere,
    create: notHere,
  };

  readonly groups: BrowserPort["groups"] = { list: () => this.#answer(() => this.groupList), update: notHere };

  onChange(listener: (change: BrowserChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async stayAwake(): Promise<void> {}

  async seesPrivate(): Promise<boolean> {
    return this.showsPrivate;
  }
}
