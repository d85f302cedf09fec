/** Tabs, windows and groups by names that are the same in every run. */
import { parseId } from "@throwbar/es/ids";
import type { BrowserPort, GroupInfo, TabInfo, WindowInfo } from "../../src/platform/port.js";

/** The page of the extension that is open in every run. */
export const homeUrl = "chrome-extension://illbokgpaofbmakbheaeacknengkefnn/options.html";

const longest = 60;

/** http://a.test/ is "a", http://a.test/x is "a/x"; other addresses are what they are. */
export function nameOf(url: string): string {
  if (url === homeUrl) {
    return "home";
  }
  if (url === "") {
    return "blank";
  }
  const name = /^http:\/\/([a-z0-9-]+)\.test(\/.*)$/.exec(url);
  if (name !== null) {
    return `${name[1]}${name[2] === "/" ? "" : name[2]}`;
  }
  return shortened(url);
}

/** The start of a long address, and how long it is. */
export function shortened(url: string): string {
  return url.length > longest ? `${url.slice(0, longest)}… (${url.length} characters)` : url;
}

/** What one looks at after each step: windows with their tabs, and groups. */
export type View = Readonly<Record<string, readonly string[]>>;

export class Names {
  readonly #tabs = new Map<number, string>();
  readonly #windows = new Map<number, string>();
  readonly #groups = new Map<number, string>();

  tab(id: number): string {
    return this.#tabs.get(id) ?? `tab ${id}`;
  }

  window(id: number): string {
    return this.#windows.get(id) ?? `window ${id}`;
  }

  group(id: number): string {
    return this.#groups.get(id) ?? `group ${id}`;
  }

  seeTab(tab: TabInfo): void {
    this.#tabs.set(tab.id, nameOf(tab.pendingUrl || tab.url));
    this.seeWindow(tab.windowId);
    if (tab.groupId !== undefined) {
      this.seeGroup(tab.groupId);
    }
  }

  /** The first window is "home", the others are w2, w3 and so on as they are seen. */
  seeWindow(id: number): void {
    if (!this.#windows.has(id)) {
      this.#windows.set(id, this.#windows.size === 0 ? "home" : `w${this.#windows.size + 1}`);
    }
  }

  seeGroup(id: number): void {
    if (!this.#groups.has(id)) {
      this.#groups.set(id, `g${this.#groups.size + 1}`);
    }
  }

  /** Reads the browser and says what it looks like. */
  async view(browser: BrowserPort): Promise<View> {
    const [tabs, windows, groups] = await Promise.all([
      browser.tabs.list(),
      browser.windows.list(),
      browser.groups.list(),
    ]);
    // Windows in the order of their ids and tabs in the order of their places, so that what is new gets the same names in every run.
    for (const { id } of [...windows].sort((a, b) => a.id - b.id)) {
      this.seeWindow(id);
    }
    for (const tab of [...tabs].sort((a, b) => a.windowId - b.windowId || a.index - b.index)) {
      this.seeTab(tab);
    }
    const out: Record<string, string[]> = {};
    for (const window of [...windows].sort((a, b) => this.#order(a) - this.#order(b))) {
      const own = tabs.filter(({ windowId }) => windowId === window.id).sort((a, b) => a.index - b.index);
      out[this.#windowText(window)] = own.map((tab) => this.tabText(tab));
    }
    if (groups.length > 0) {
      out.groups = groups.map((group) => this.#groupText(group)).sort();
    }
    return out;
  }

  #order({ id }: WindowInfo): number {
    const place = [...this.#windows.keys()].indexOf(id);
    return place < 0 ? Number.MAX_SAFE_INTEGER : place;
  }

  #windowText({ id, kind }: WindowInfo): string {
    return kind === "normal" ? this.window(id) : `${this.window(id)} ${kind}`;
  }

  tabText(tab: TabInfo): string {
    const words = [nameOf(tab.pendingUrl || tab.url)];
    for (const [word, is] of [
      ["active", tab.active],
      ["pinned", tab.pinned],
      ["muted", tab.muted],
      ["asleep", tab.discarded],
    ] as const) {
      if (is) {
        words.push(word);
      }
    }
    return tab.groupId === undefined ? words.join(" ") : `${words.join(" ")} in ${this.group(tab.groupId)}`;
  }

  #groupText({ id, windowId, title, colour, collapsed }: GroupInfo): string {
    const look = [JSON.stringify(title), colour, ...(collapsed ? ["collapsed"] : [])].join(" ");
    return `${this.group(id)} of ${this.window(windowId)}: ${look}`;
  }

  /** A composite id by its name; other texts as they are. */
  text(text: string): string {
    const id = parseId(text);
    switch (id?.kind) {
      case "tab":
        return this.tab(id.native);
      case "window":
        return this.window(id.native);
      case "group":
        return this.group(id.native);
      default:
        return text;
    }
  }

  /** The same in everything that JSON can hold. */
  all(value: unknown): unknown {
    if (typeof value === "string") {
      return this.text(value);
    }
    if (Array.isArray(value)) {
      return value.map((each) => this.all(each));
    }
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [this.text(key), this.all(each)]));
    }
    return value;
  }
}
