/** Commands of every kind at random, and what has to hold of them whatever was stopped in between. */
import type { Case, ResultOf } from "@throwbar/es/commands";
import { ErrorCode } from "@throwbar/es/pb/command";
import type { DeviceOutcome } from "@throwbar/es/pb/commands";
import { Colour, ItemStatus, type Tab } from "@throwbar/es/pb/state";
import { type Fixture, type Kind, resultOf } from "./fixture.js";
import type { Chance } from "./random.js";

/** A tab's address says what may be done to it, so that each load of each page can be accounted for. */
const pools = ["open", "nav", "reload", "save"] as const;
type Pool = (typeof pools)[number];

const poolOf = (tab: Tab) => pools.find((pool) => tab.url.startsWith(`http://${pool}.load.test/`));

/** What a command may end with when its worker is stopped, or when another one was there first. */
const allowed: ReadonlySet<ErrorCode> = new Set([ErrorCode.INTERRUPTED, ErrorCode.NOT_FOUND, ErrorCode.EXPIRED]);

const closedMeanwhile = /^the tab closed at once|^the tab \S+ was opened, but could not be shown: No tab with id/;

const ttlSeconds = 30;
/** Nobody has answered for the device. Less may be a busy machine. */
const slowSeconds = ttlSeconds + 5;

type ValueOf<C extends Case> = Extract<Kind, { case: C }>["value"];

export class Load {
  readonly #f: Fixture;
  readonly #chance: Chance;
  #number = 0;
  /** How often each address may have been loaded at the most. */
  readonly #loads = new Map<string, number>();
  /** Tabs that were opened, by id. */
  readonly #opened = new Map<string, string>();
  /** Tabs of which something said that they were to be closed, and those that were closed for certain. */
  readonly #targets = new Set<string>();
  readonly #closed = new Set<string>();
  readonly #saved: { readonly id: string; readonly url: string }[] = [];
  /** How the commands ended, by name and end. */
  readonly ends = new Map<string, number>();
  readonly faults: string[] = [];
  /** Those that were ended by their time and not by what they do. */
  readonly slow: string[] = [];

  constructor(f: Fixture, chance: Chance) {
    this.#f = f;
    this.#chance = chance;
  }

  /** The kinds that have had a result. */
  kinds(): string[] {
    return [...this.ends.keys()].flatMap((end) => (end.endsWith(" result") ? [end.replace(" result", "")] : []));
  }

  /** Runs one command of some kind to its end. */
  async one(): Promise<void> {
    const tabs = (await this.#f.serverTabs()).filter((tab) => poolOf(tab) !== undefined);
    const crowded = tabs.length > 40;
    const roll = this.#chance.below(100);
    if ((roll < 32 && !crowded) || tabs.length < 4) {
      return this.#open();
    }
    if (roll < 50) {
      return this.#close(this.#some(tabs, 3));
    }
    if (roll < 54) {
      return this.#closeByUrl(this.#chance.pick(tabs));
    }
    if (roll < 62) {
      return this.#saveOrRestore(tabs.filter((tab) => poolOf(tab) === "save"));
    }
    return this.#change(roll, tabs);
  }

  #some(tabs: readonly Tab[], most: number): Tab[] {
    const count = 1 + this.#chance.below(most);
    return [...new Set(Array.from({ length: count }, () => this.#chance.pick(tabs)))];
  }

  #url(pool: Pool): string {
    const url = `http://${pool}.load.test/${++this.#number}`;
    this.#allow(url);
    return url;
  }

  #allow(url: string): void {
    this.#loads.set(url, (this.#loads.get(url) ?? 0) + 1);
  }

  async #run<C extends Case>(name: C, value: ValueOf<C>): Promise<ResultOf<C> | undefined> {
    let outcome: DeviceOutcome;
    const begun = performance.now();
    try {
      outcome = await this.#f.dispatch({ case: name, value } as Kind, ttlSeconds);
    } catch (error) {
      this.faults.push(`${name} had no typed end: ${error}`);
      return undefined;
    }
    const { case: how, value: answer } = outcome.outcome;
    const end = how === "error" ? (ErrorCode[answer.code] ?? "") : how;
    this.#count(`${name} ${end}`);
    const seconds = Math.round((performance.now() - begun) / 1000);
    if (seconds >= slowSeconds) {
      const why = how === "error" ? `: ${answer.message}` : "";
      this.slow.push(`${name} ${end} after ${seconds} s${why}`);
    }
    // Another lane may close a tab before the one that has opened it has shown it or said so.
    const closed = how === "error" && name === "openTab" && closedMeanwhile.test(answer.message);
    if (how === "error" && !allowed.has(answer.code) && !closed) {
      this.faults.push(`${name}: ${end} ${answer.message}`);
    }
    return how === "result" ? (resultOf<C>(outcome) as ResultOf<C> | undefined) : undefined;
  }

  #count(end: string): void {
    this.ends.set(end, (this.ends.get(end) ?? 0) + 1);
  }

  async #open(): Promise<void> {
    const url = this.#url(this.#chance.pick(pools));
    const result = await this.#run("openTab", { url, active: this.#chance.below(4) === 0 });
    if (result !== undefined) {
      this.#opened.set(result.tabId, url);
    }
  }

  async #close(tabs: readonly Tab[]): Promise<void> {
    const tabIds = tabs.map(({ tabId }) => tabId);
    this.#aim(tabIds);
    const result = await this.#run("closeTabs", { tabIds });
    this.#note(result?.items);
  }

  async #closeByUrl({ url }: Tab): Promise<void> {
    this.#aim((await this.#f.serverTabs()).filter((tab) => tab.url.startsWith(url)).map(({ tabId }) => tabId));
    const result = await this.#run("closeTabsByUrl", { url });
    this.#note(result?.items);
  }

  #aim(ids: readonly string[]): void {
    for (const id of ids) {
      this.#targets.add(id);
    }
  }

  #note(items: readonly { readonly id: string; readonly status: ItemStatus }[] = []): void {
    for (const { id, status } of items) {
      this.#targets.add(id);
      if (status === ItemStatus.OK) {
        this.#closed.add(id);
      }
    }
  }

  async #saveOrRestore(tabs: readonly Tab[]): Promise<void> {
    const saved = this.#chance.below(2) === 0 ? this.#saved.shift() : undefined;
    if (saved !== undefined) {
      this.#allow(saved.url);
      await this.#run("restoreTabs", { savedIds: [saved.id] });
      return;
    }
    const [tab] = tabs;
    if (tab === undefined) {
      return this.#open();
    }
    this.#aim([tab.tabId]);
    await this.#run("saveTabs", { tabIds: [tab.tabId], close: true });
    const { savedTabs: kept } = await this.#f.api.browser.listSavedTabs({ pageSize: 1000 });
    const row = kept.find(({ url }) => url === tab.url);
    if (row !== undefined && !this.#saved.some(({ id }) => id === row.savedId)) {
      this.#saved.push({ id: row.savedId, url: row.url });
    }
  }

  /** What neither opens nor closes. */
  async #change(roll: number, tabs: readonly Tab[]): Promise<void> {
    const tabIds = this.#some(tabs, 3).map(({ tabId }) => tabId);
    const tabId = tabIds[0] ?? "";
    const flag = this.#chance.below(2) === 0;
    const nav = tabs.find((tab) => poolOf(tab) === "nav");
    const reload = tabs.find((tab) => poolOf(tab) === "reload");
    if (roll < 70 && nav !== undefined) {
      const url = this.#url("nav");
      this.#opened.delete(nav.tabId);
      await this.#run("navigateTab", { tabId: nav.tabId, url });
    } else if (roll < 76 && reload !== undefined) {
      this.#allow(reload.url);
      await this.#run("reloadTabs", { tabIds: [reload.tabId] });
    } else if (roll < 80) {
      await this.#run("pinTabs", { tabIds, pinned: flag });
    } else if (roll < 84) {
      await this.#run("muteTabs", { tabIds, muted: flag });
    } else if (roll < 88) {
      await this.#run("groupTabs", { tabIds: [tabId], title: "g", colour: Colour.BLUE });
    } else if (roll < 91) {
      await this.#run("ungroupTabs", { tabIds });
    } else if (roll < 95) {
      await this.#run("moveTabs", { tabIds: [tabId], index: this.#chance.below(8) });
    } else if (roll < 98) {
      await this.#run("activateTab", { tabId });
    } else {
      await this.#run("getActiveTab", {});
    }
  }

  /** Holds what there is now against what was answered. */
  async check(): Promise<void> {
    await this.#f.inStep();
    const tabs = await this.#f.serverTabs();
    const byId = new Map(tabs.map((tab) => [tab.tabId, tab]));
    for (const id of this.#closed) {
      if (byId.has(id)) {
        this.faults.push(`${id} was said to be closed and is there`);
      }
    }
    for (const [id, url] of this.#opened) {
      if (!this.#targets.has(id) && !byId.has(id)) {
        this.faults.push(`${id} at ${url} was opened, closed by nobody, and is not there`);
      }
    }
    for (const [url, most] of this.#loads) {
      const loads = this.#f.pages.hits.get(url) ?? 0;
      if (loads > most) {
        this.faults.push(`${url} was loaded ${loads} times and not ${most}`);
      }
      const open = tabs.filter((tab) => tab.url === url).length;
      if (open > 1 && !url.startsWith("http://save.")) {
        this.faults.push(`${url} is open ${open} times`);
      }
    }
  }
}
