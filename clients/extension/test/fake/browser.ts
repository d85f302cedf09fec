/** A browser as far as the port shows one. What it does is what Chromium was seen to do; the case table holds both to it. */
import {
  BrowserError,
  type BrowserPort,
  type GroupColour,
  type GroupsPort,
  groupColours,
  type NewTab,
  type TabChange,
  type TabInfo,
  type TabsPort,
  type WindowsPort,
} from "../../src/platform/port.js";
import { type Landing, landing } from "./addresses.js";
import { clone, FakeModel, type FakeTab, noTab, seen } from "./model.js";
import { addToGroup, gather, groupAround, groupAt, placeAmong, takeOut } from "./order.js";

export type { FakeTab } from "./model.js";

/** What the API says of a value that it does not take. */
const wrongValue = (text: string) => new BrowserError("other", `Error in invocation of ${text}`);

export class FakeBrowser extends FakeModel implements BrowserPort {
  /** How many of the next calls find a tab that a person drags. */
  busy = 0;
  /** Ids that were asked to close, in order. */
  readonly removals: number[] = [];
  awakeCalls = 0;
  /** A second call to close a tab whose page asks does nothing so soon after the first, and closes it later. */
  patienceMs = 450;

  readonly stayAwake = async (): Promise<void> => {
    this.awakeCalls++;
  };

  readonly seesPrivate = async (): Promise<boolean> => false;

  #hang: { readonly method: string; readonly when: "before" | "after"; readonly hangs: () => void } | undefined;

  /** Makes the next call of this kind hang, before it does anything or after it has done all. Resolves once it does. */
  hang(method: keyof TabsPort, when: "before" | "after"): Promise<void> {
    return new Promise((hangs) => {
      this.#hang = { method, when, hangs };
    });
  }

  async #call<T>(method: keyof TabsPort, run: () => Promise<T>): Promise<T> {
    const hang = this.#hang;
    if (hang?.method !== method) {
      return run();
    }
    this.#hang = undefined;
    if (hang.when === "after") {
      await run();
    }
    hang.hangs();
    return new Promise(() => {});
  }

  #free(): void {
    if (this.busy > 0) {
      this.busy--;
      throw new BrowserError("busy", "Tabs cannot be edited right now (user may be dragging a tab).");
    }
  }

  /** The window in front, or another one that holds more than one tab. */
  #normalWindow(wanted: number | undefined): number {
    const id = wanted ?? this.lastFocusedId;
    const window = id === undefined ? undefined : this.window(id);
    const normal = window?.kind === "normal" ? window : this.windowList.find(({ kind }) => kind === "normal");
    if (normal === undefined) {
      throw new BrowserError("noWindow", "No current window");
    }
    return normal.id;
  }

  async #create(wanted: NewTab): Promise<TabInfo> {
    this.#free();
    if (wanted.index !== undefined && wanted.index < 0) {
      throw wrongValue("tabs.create: Value must be at least 0.");
    }
    const where = landing(wanted.url ?? "chrome://newtab/");
    const windowId = this.#normalWindow(wanted.windowId);
    const { index = Number.POSITIVE_INFINITY, active, pinned = false } = wanted;
    const loading = !where.tooLong;
    const tab = this.addTab("", windowId, { pendingUrl: where.pending, title: "", pinned, loading, index });
    tab.groupId = groupAround(
      this.in(windowId).filter((each) => each !== tab),
      tab.index,
    );
    if (active) {
      this.activate(tab);
      this.#showWindow(windowId);
    }
    const atOnce = seen(tab);
    queueMicrotask(() => this.#load(tab, where));
    return atOnce;
  }

  /** Servers answer as those of the end-to-end tests do. */
  #load(tab: FakeTab, { pending, url }: Landing): void {
    if (tab.pendingUrl !== pending) {
      return; // it goes elsewhere by now
    }
    if (url?.endsWith("/file") && tab.url === "") {
      this.vanish(tab.id);
    } else if (!url?.endsWith("/silent")) {
      this.#arrive(tab, /\/(nothing|file)$/.test(url ?? "") ? undefined : url?.replace(/\/redirects$/, "/target"));
    }
  }

  /** A tab that is made in front takes its window with it. */
  #showWindow(windowId: number): void {
    if (this.lastFocusedId !== windowId) {
      this.focusWindow(windowId);
    }
  }

  /** The page has come; undefined if nothing does. */
  #arrive(tab: FakeTab, url: string | undefined): void {
    const { pendingUrl } = tab;
    Object.assign(tab, { pendingUrl: "", loading: false, discarded: false });
    if (url === undefined || !this.tabList.includes(tab)) {
      return;
    }
    const sameDocument = url.split("#")[0] === tab.url.split("#")[0] && pendingUrl.includes("#");
    Object.assign(tab, { url, title: `Title of ${url}`, guarded: false });
    this.tellTab(tab, { loading: true, page: true });
    if (!sameDocument) {
      this.tellTab(tab, { page: true });
    }
    this.tellTab(tab);
  }

  async #update(id: number, change: TabChange): Promise<TabInfo> {
    this.#free();
    const tab = this.tab(id);
    if (change.active === true) {
      this.activate(tab);
    }
    if (change.muted !== undefined && change.muted !== tab.muted) {
      tab.muted = change.muted;
      this.tellTab(tab);
    }
    if (change.pinned !== undefined && change.pinned !== tab.pinned) {
      this.#pin(tab, change.pinned);
    }
    if (change.url !== undefined) {
      this.#navigate(tab, change.url);
    } else if (change.active === true && tab.discarded) {
      this.#wake(tab);
    }
    return seen(tab);
  }

  #pin(tab: FakeTab, pinned: boolean): void {
    const { windowId } = tab;
    this.leaveGroup(tab);
    tab.pinned = pinned;
    this.tellTab(tab);
    const others = this.in(windowId).filter((each) => each !== tab);
    others.splice(placeAmong(others, tab, pinned ? Number.POSITIVE_INFINITY : 0), 0, tab);
    this.arrange(windowId, others, [tab]);
  }

  /** Asleep it shows what it showed, and loads it once it is woken. */
  #wake(tab: FakeTab): void {
    Object.assign(tab, { discarded: false, loading: true, pendingUrl: tab.url });
    queueMicrotask(() => this.#arrive(tab, tab.url));
  }

  #navigate(tab: FakeTab, wanted: string): void {
    const where = landing(wanted);
    if (where.tooLong) {
      throw new BrowserError("refusedUrl", "Navigation rejected.");
    }
    const go = () => this.#load(tab, where);
    Object.assign(tab, { pendingUrl: where.pending, loading: true });
    if (tab.guarded) {
      this.ask(tab, go);
    } else {
      queueMicrotask(go);
    }
  }

  async #remove(ids: readonly number[]): Promise<void> {
    const waiting: Promise<void>[] = [];
    this.#free();
    for (const id of ids) {
      const tab = this.tabList.find((each) => each.id === id);
      if (tab === undefined) {
        throw noTab(id);
      }
      this.removals.push(id);
      if (tab.guarded && tab.askedAt === undefined) {
        waiting.push(new Promise((gone) => this.ask(tab, () => this.#gone(tab, gone))));
      } else if (tab.askedAt !== undefined && performance.now() - tab.askedAt < this.patienceMs) {
        waiting.push(new Promise(() => {}));
      } else {
        this.vanish(id);
      }
    }
    await Promise.all(waiting);
  }

  /** The person let a tab go, or a second call closed it. */
  #gone(tab: FakeTab, gone: () => void): void {
    if (this.tabList.includes(tab)) {
      this.vanish(tab.id);
    }
    gone();
  }

  async #move(id: number, to: { readonly windowId?: number; readonly index: number }): Promise<TabInfo> {
    this.#free();
    if (to.index < -1) {
      throw wrongValue("tabs.move: Value must be at least -1.");
    }
    const tab = this.tab(id);
    const windowId = to.windowId ?? tab.windowId;
    const index = to.index < 0 ? Number.POSITIVE_INFINITY : to.index;
    if (windowId === tab.windowId) {
      this.#moveWithin(tab, index);
    } else {
      const from = tab.windowId;
      this.#moveAcross(tab, windowId, index);
      this.dropEmptyWindow(from);
    }
    return seen(tab);
  }

  #moveWithin(tab: FakeTab, index: number): void {
    const { windowId } = tab;
    const others = this.in(windowId).filter((each) => each !== tab);
    const place = placeAmong(others, tab, index);
    const groupId = groupAt(others, place, tab);
    if (groupId !== tab.groupId) {
      tab.groupId = groupId;
      this.tellTab(tab);
      this.dropEmptyGroups();
    }
    others.splice(place, 0, tab);
    this.arrange(windowId, others, [tab]);
  }

  /** Leaves its group and its pin behind. */
  #moveAcross(tab: FakeTab, windowId: number, index: number): void {
    if (this.window(windowId).kind !== "normal") {
      throw new BrowserError("unsupportedWindow", "Tabs can only be moved to and from normal windows.");
    }
    const others = this.in(windowId);
    if (groupAround(others, placeAmong(others, { pinned: false, groupId: undefined }, index)) !== undefined) {
      throw new BrowserError(
        "splitsGroup",
        "Tab operation is invalid as the specified input would disrupt group continuity in the tab strip.",
      );
    }
    this.detach(tab);
    Object.assign(tab, { windowId, pinned: false });
    this.insert(tab, index);
    this.tellPlace(tab);
  }

  async #group(ids: readonly number[], into: { groupId: number } | { windowId: number }): Promise<number> {
    this.#free();
    if (ids.length === 0) {
      throw wrongValue("tabs.group: Value did not match any choice.");
    }
    const tabs = [...new Set(ids)].map((id) => this.tab(id));
    const windowId = this.#groupWindow(into);
    const left = tabs.map((tab) => tab.windowId).filter((id) => id !== windowId);
    for (const tab of tabs.filter((each) => each.windowId !== windowId)) {
      this.#moveAcross(tab, windowId, Number.POSITIVE_INFINITY);
    }
    const before = new Map(tabs.map((tab) => [tab, tab.groupId]));
    const pinned = tabs.filter((tab) => tab.pinned);
    const made = "groupId" in into ? undefined : this.addGroup(windowId);
    const id = made ?? ("groupId" in into ? into.groupId : 0);
    const members = new Set(tabs);
    const strip =
      made === undefined ? addToGroup(this.in(windowId), members, id) : gather(this.in(windowId), members, id);
    const changed = strip.filter((tab) => members.has(tab) && before.get(tab) !== id);
    for (const tab of [...pinned, ...changed]) {
      this.tellTab(tab);
    }
    this.dropEmptyGroups();
    if (made !== undefined) {
      this.tell({ kind: "groups" });
      this.tell({ kind: "groups" });
    }
    this.arrange(windowId, strip, members);
    for (const emptied of left) {
      this.dropEmptyWindow(emptied);
    }
    return id;
  }

  /** The window that a group is in or is made in. */
  #groupWindow(into: { groupId: number } | { windowId: number }): number {
    if ("groupId" in into) {
      return this.#groupOf(into.groupId).windowId;
    }
    if (this.window(into.windowId).kind !== "normal") {
      throw new BrowserError("unsupportedWindow", "Grouping is not supported by tabs in this window.");
    }
    return into.windowId;
  }

  #groupOf(id: number) {
    const group = this.groupList.find((each) => each.id === id);
    if (group === undefined) {
      throw new BrowserError("noGroup", `No group with id: ${id}.`, id);
    }
    return group;
  }

  /** One after the other: those before one that is gone are out of their groups. */
  async #ungroup(ids: readonly number[]): Promise<void> {
    this.#free();
    if (ids.length === 0) {
      throw wrongValue("tabs.ungroup: Value did not match any choice.");
    }
    for (const id of ids) {
      const tab = this.tab(id);
      if (tab.groupId === undefined) {
        continue;
      }
      const strip = takeOut(this.in(tab.windowId), tab);
      this.tellTab(tab);
      this.arrange(tab.windowId, strip, [tab]);
      this.dropEmptyGroups();
    }
  }

  async #reload(id: number): Promise<void> {
    const tab = this.tab(id);
    const go = () => {
      Object.assign(tab, { discarded: false, pendingUrl: "", loading: false });
      this.tellTab(tab, { loading: true });
      this.tellTab(tab);
    };
    if (tab.guarded) {
      Object.assign(tab, { pendingUrl: tab.url, loading: true });
      this.ask(tab, go);
    } else {
      go();
    }
  }

  /** A window of ours does not get the focus. */
  async #createWindow(url: string): Promise<TabInfo> {
    const where = landing(url);
    const before = this.windowList.find(({ id }) => id === this.lastFocusedId);
    const windowId = this.addWindow();
    if (before !== undefined) {
      this.focusWindow(before.id);
    }
    const tab = this.addTab("", windowId, { pendingUrl: where.pending, title: "", active: true, loading: true });
    this.tell({ kind: "shown", id: tab.id, windowId });
    const atOnce = seen(tab);
    queueMicrotask(() => this.#load(tab, where));
    return atOnce;
  }

  readonly tabs: TabsPort = {
    list: async (windowId) => (windowId === undefined ? this.tabList : this.in(windowId)).map(seen),
    get: async (id) => {
      const tab = this.tabList.find((each) => each.id === id);
      return tab === undefined ? undefined : seen(tab);
    },
    create: (tab) => this.#call("create", () => this.#create(tab)),
    update: (id, change) => this.#call("update", () => this.#update(id, change)),
    remove: (ids) => this.#call("remove", () => this.#remove(ids)),
    move: (id, to) => this.#call("move", () => this.#move(id, to)),
    reload: (id) => this.#reload(id),
    group: (ids, into) => this.#call("group", () => this.#group(ids, into)),
    ungroup: (ids) => this.#call("ungroup", () => this.#ungroup(ids)),
  };

  readonly windows: WindowsPort = {
    list: async () => clone(this.windowList),
    lastFocused: async () => this.lastFocusedId,
    focus: async (id) => this.focusWindow(id),
    create: (url) => this.#createWindow(url),
  };

  readonly groups: GroupsPort = {
    list: async () => clone(this.groupList),
    update: async (id, change: { readonly title?: string; readonly colour?: GroupColour }) => {
      const group = this.#groupOf(id);
      if (change.colour !== undefined && !groupColours.includes(change.colour)) {
        throw wrongValue(
          "tabGroups.update: Value must be one of blue, cyan, green, grey, orange, pink, purple, red, yellow.",
        );
      }
      Object.assign(group, {
        ...change,
        ...(change.title === undefined ? {} : { title: change.title.toWellFormed() }),
      });
      this.tell({ kind: "groups" });
    },
  };
}
