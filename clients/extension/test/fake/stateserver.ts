/** What a server makes of snapshots and deltas, by the contract's words alone. */
import type { Delta, Snapshot } from "@throwbar/es/pb/device";
import type { Tab, TabGroup, Window } from "@throwbar/es/pb/state";

type Resync = "resync" | undefined;

export class StateServer {
  readonly tabs = new Map<string, Tab>();
  /** The tabs of each window, in order. */
  readonly order = new Map<string, string[]>();
  readonly windows = new Map<string, Window>();
  readonly groups = new Map<string, TabGroup>();
  /** Ids that tabs had, with those that they have. */
  readonly replaced = new Map<string, string>();
  live = false;
  sequence = 0n;
  #coming: Snapshot[] = [];
  #waiting: Delta[] = [];

  /** Another link: what follows begins with a snapshot. */
  attach(): void {
    this.live = false;
    this.#coming = [];
    this.#waiting = [];
  }

  snapshot(chunk: Snapshot): Resync {
    if (chunk.chunk === 0) {
      this.#coming = [];
      this.#waiting = this.#waiting.filter(({ sequence }) => sequence > chunk.sequence);
    } else if (this.#coming.length !== chunk.chunk || this.#coming[0]?.sequence !== chunk.sequence) {
      this.attach();
      return "resync";
    }
    this.#coming.push(chunk);
    if (!chunk.last) {
      return undefined;
    }
    const tabs = this.#coming.flatMap((each) => each.tabs).sort((a, b) => a.index - b.index);
    this.tabs.clear();
    this.order.clear();
    this.windows.clear();
    this.groups.clear();
    for (const tab of tabs) {
      this.tabs.set(tab.tabId, tab);
      this.order.set(tab.windowId, [...(this.order.get(tab.windowId) ?? []), tab.tabId]);
    }
    this.#rows(
      this.#coming.flatMap((each) => each.windows),
      this.#coming.flatMap((each) => each.groups),
    );
    this.sequence = chunk.sequence;
    this.live = true;
    const waiting = this.#waiting;
    this.attach();
    this.live = true;
    return waiting.map((delta) => this.#follow(delta)).find((resync) => resync);
  }

  delta(delta: Delta): Resync {
    if (this.#coming.length > 0) {
      this.#waiting.push(delta);
      return undefined;
    }
    return this.live ? this.#follow(delta) : undefined;
  }

  #follow(delta: Delta): Resync {
    if (delta.sequence <= this.sequence) {
      return undefined;
    }
    if (delta.sequence !== this.sequence + 1n) {
      this.attach();
      return "resync";
    }
    this.sequence = delta.sequence;
    for (const id of [...delta.removed, ...delta.replaced.map(({ oldTabId }) => oldTabId)]) {
      this.tabs.delete(id);
      this.windows.delete(id);
      this.groups.delete(id);
    }
    for (const { oldTabId, newTabId } of delta.replaced) {
      this.replaced.set(oldTabId, newTabId);
    }
    const named = new Map(delta.tabs.map((tab) => [tab.tabId, tab]));
    for (const tab of delta.tabs) {
      this.tabs.set(tab.tabId, tab);
    }
    for (const windowId of new Set([...this.order.keys(), ...delta.tabs.map((tab) => tab.windowId)])) {
      this.#order(windowId, named);
    }
    this.#rows(delta.windows, delta.groups);
    return undefined;
  }

  /** Tabs that are named have their place; the others fill the rest in the order that they had. */
  #order(windowId: string, named: ReadonlyMap<string, Tab>): void {
    const others = (this.order.get(windowId) ?? []).filter((id) => this.tabs.has(id) && !named.has(id));
    const here = [...named.values()].filter((tab) => tab.windowId === windowId);
    const at = new Map(here.map((tab) => [tab.index, tab.tabId]));
    const order: string[] = [];
    for (let left = others.length + at.size; left > 0; left--) {
      const next = at.get(order.length) ?? others.shift() ?? [...at.values()].find((id) => !order.includes(id)) ?? "";
      order.push(next);
    }
    this.order.delete(windowId);
    if (order.length > 0) {
      this.order.set(windowId, order);
    }
  }

  #rows(windows: readonly Window[], groups: readonly TabGroup[]): void {
    for (const window of windows) {
      this.windows.set(window.windowId, window);
    }
    for (const group of groups) {
      this.groups.set(group.groupId, group);
    }
  }
}
