/** Closing tabs, each at most once, and telling by reading what came of it. */
import { ItemStatus } from "@throwbar/es/pb/state";
import { BrowserError, type TabInfo } from "../platform/port.js";
import { address } from "../state/convert.js";
import type { Context } from "./context.js";
import { pause } from "./deadline.js";
import { failedItem } from "./items.js";
import { isNormal, whenFree } from "./targets.js";
import { Watch } from "./watch.js";

/** A tab that is to be closed. */
export interface Closing {
  /** The browser's own id. */
  readonly id: number;
  /** Where it has to be for that; anywhere if left out. */
  readonly url?: string;
}

export interface CloseOutcome {
  readonly status: ItemStatus;
  readonly detail: string;
}

export interface Closed {
  /** By the ids that were given. */
  readonly outcomes: ReadonlyMap<number, CloseOutcome>;
  /** Empty tabs that were opened so that the browser stays open. */
  readonly openedTabs: readonly number[];
}

/** One call closes so many: it cannot be called back, and time may run out. */
const atOnce = 50;
/** When nothing has closed for so long, the pages that are left ask the person. */
const quietMs = 600;
/** The same where there is no time to be sure. */
const calmMs = 100;
/** A second call that comes sooner after the first is ignored by the browser: seen in Chromium below half a second. */
const forceAfterMs = 1000;
/** How long a tab that is on its way to another address is waited for. */
const leaveMs = 3000;
/** How long a tab that was asked to close before the worker was stopped may still take. */
const settleMs = 1000;
const lookEveryMs = 100;

const outcome = (status: ItemStatus, detail = ""): CloseOutcome => ({ status, detail });

const asks = "the page asks the person before it is left; the tab is in front of its window, and still open";
const askedBefore =
  "an earlier command asked its page to close, and it is still open: a second time would close it without an answer. The person can answer or close it; force closes it and loses what was typed";
const leaving =
  "it is on its way to another address, and its page may be asking the person whether to leave; not asked to close";
const elsewhere = "it went to another address meanwhile";
const slow = "it was asked to close, and was still open when the time ran out";
const noTime = "it was not its turn yet when the time ran out; not asked to close";

/** Closes tabs. It waits for those whose page asks the person until it is time to answer. */
export async function closeTabsOnce(context: Context, tabs: readonly Closing[], force = false): Promise<Closed> {
  const spare = await keepBrowserOpen(context, new Set(tabs.map(({ id }) => id)));
  const closer = new Closer(context, force);
  return { outcomes: await closer.run(tabs), openedTabs: spare === undefined ? [] : [spare] };
}

class Closer {
  readonly #context: Context;
  readonly #force: boolean;
  readonly #watch: Watch;
  /** What is known of tabs that were not asked to close; the others are read at the end. */
  readonly #known = new Map<number, CloseOutcome>();
  /** Tabs that this command has asked, by the ids that they had then. */
  readonly #asked = new Map<number, number>();
  /** Tabs that were asked a second time: that one of them is not known then means that it has closed. */
  readonly #twice = new Set<number>();

  constructor(context: Context, force: boolean) {
    this.#context = context;
    this.#force = force;
    this.#watch = new Watch(context);
  }

  async run(tabs: readonly Closing[]): Promise<Map<number, CloseOutcome>> {
    try {
      for (let at = 0; at < tabs.length && !this.#context.signal.aborted; at += atOnce) {
        const last = at + atOnce >= tabs.length;
        await this.#close(tabs.slice(at, at + atOnce), last);
      }
      return await this.#outcomes(tabs);
    } finally {
      this.#watch.end();
    }
  }

  async #close(tabs: readonly Closing[], last: boolean): Promise<void> {
    const waiting = await this.#ask(tabs, !this.#force);
    if (waiting.length > 0) {
      await this.#ask(await this.#left(waiting), false);
    }
    const own = () => tabs.flatMap(({ id }) => this.#asked.get(id) ?? []);
    if (this.#force) {
      await this.#watch.closed(own(), { withinMs: forceAfterMs });
      await this.#askAgain(own());
    }
    // The last ones are waited for: a person who is asked may still answer.
    await this.#watch.closed(own(), last ? {} : { quietMs });
  }

  /** Asks tabs to close, and returns those that have to be waited for first. */
  async #ask(tabs: readonly Closing[], mayWait: boolean): Promise<Closing[]> {
    const { asked, current, signal } = this.#context;
    const now = await this.#open();
    const ready: { readonly id: number; readonly tab: TabInfo }[] = [];
    const waiting: Closing[] = [];
    for (const each of tabs) {
      const tab = now.get(current(each.id));
      if (tab === undefined) {
        this.#known.set(each.id, outcome(ItemStatus.NOT_FOUND));
      } else if (signal.aborted) {
        this.#known.set(each.id, outcome(ItemStatus.SKIPPED, noTime));
      } else if (each.url !== undefined && each.url !== address(tab)) {
        this.#known.set(each.id, outcome(ItemStatus.SKIPPED, elsewhere));
      } else if (mayWait && isLeaving(tab)) {
        waiting.push(each);
      } else {
        ready.push({ id: each.id, tab });
      }
    }
    const natives = ready.map(({ tab }) => tab.id);
    const mine = new Set(await (this.#force ? asked.seize(natives) : asked.claim(natives)));
    for (const { id, tab } of ready) {
      if (mine.has(tab.id)) {
        this.#asked.set(id, tab.id);
      } else {
        this.#known.set(id, outcome(ItemStatus.BLOCKED_BY_PAGE, askedBefore));
      }
    }
    this.#removeByWindow(ready.map(({ tab }) => tab).filter(({ id }) => mine.has(id)));
    return waiting;
  }

  /**
   * Waits until tabs are where they were going. The question whether to leave a page for another address is up no longer then;
   * to ask to close while it is would close the tab without an answer.
   */
  async #left(tabs: readonly Closing[]): Promise<Closing[]> {
    const { current, signal } = this.#context;
    for (let waited = 0; ; waited += lookEveryMs) {
      const now = await this.#open();
      const still = tabs.filter(({ id }) => isLeaving(now.get(current(id))));
      if (still.length === 0 || waited >= leaveMs || signal.aborted) {
        for (const { id } of still) {
          this.#known.set(id, outcome(ItemStatus.BUSY, leaving));
        }
        return tabs.filter((each) => !still.includes(each));
      }
      await pause(lookEveryMs, signal);
    }
  }

  /**
   * One call for the tabs of a window, which is twice as fast as one for each. Whether a person drags one is found out window by
   * window before any is asked, so a call that is refused for that can be made again.
   */
  #removeByWindow(tabs: readonly TabInfo[]): void {
    const byWindow = new Map<number, number[]>();
    for (const { id, windowId } of tabs) {
      byWindow.set(windowId, [...(byWindow.get(windowId) ?? []), id]);
    }
    for (const ids of byWindow.values()) {
      this.#watch.stir();
      // It stays open while a page asks, so nobody waits for it.
      void this.#remove(ids).catch(() => {});
    }
  }

  /** The browser stops at the first tab that it does not know: those before it were asked, those after it are asked next. */
  async #remove(ids: readonly number[]): Promise<void> {
    const { browser } = this.#context;
    let next = ids;
    while (next.length > 0) {
      const some = next;
      try {
        await whenFree(this.#context, () => browser.tabs.remove(some));
        return;
      } catch (error) {
        const missing = error instanceof BrowserError && error.kind === "noTab" ? error.missingId : undefined;
        const at = missing === undefined ? -1 : some.indexOf(missing);
        if (missing === undefined || at < 0) {
          this.#refused(some, error);
          return;
        }
        next = [...(await this.#gone(missing)), ...some.slice(at + 1)];
      }
    }
  }

  /** Somebody else closed a tab, or the browser gave it another id just now: then that is returned, and asked next. */
  async #gone(native: number): Promise<number[]> {
    const { asked, current } = this.#context;
    const now = current(native);
    if (now !== native && (await asked.claim([now])).length > 0) {
      for (const [id, was] of this.#asked) {
        if (was === native) {
          this.#asked.set(id, now);
        }
      }
      return [now];
    }
    asked.release([native]);
    this.#notAsked([native], outcome(ItemStatus.NOT_FOUND));
    return [];
  }

  #refused(ids: readonly number[], error: unknown): void {
    if (!(error instanceof BrowserError)) {
      return; // it was time to answer: what became of them is read
    }
    const { status, detail } = failedItem("", error);
    if (error.kind === "busy") {
      this.#context.asked.release(ids);
    }
    this.#notAsked(ids, outcome(status, detail));
  }

  #notAsked(natives: readonly number[], known: CloseOutcome): void {
    for (const [id, native] of this.#asked) {
      if (natives.includes(native) && !this.#twice.has(native)) {
        this.#known.set(id, known);
      }
    }
    this.#watch.giveUp(natives);
  }

  /** Once more, and no page is asked now. */
  async #askAgain(ids: readonly number[]): Promise<void> {
    if (this.#context.signal.aborted) {
      return;
    }
    const now = await this.#open();
    const tabs = ids.flatMap((id) => now.get(id) ?? []);
    for (const { id } of tabs) {
      this.#twice.add(id);
    }
    this.#removeByWindow(tabs);
  }

  async #open(): Promise<Map<number, TabInfo>> {
    return new Map((await this.#context.browser.tabs.list()).map((tab) => [tab.id, tab]));
  }

  async #outcomes(tabs: readonly Closing[]): Promise<Map<number, CloseOutcome>> {
    const { current, deadline } = this.#context;
    let now = await this.#open();
    let calm = true;
    if ([...this.#asked].some(([id, native]) => !this.#known.has(id) && now.has(current(native)))) {
      calm = await this.#watch.calm(calmMs, Math.min(5 * calmMs, deadline.left() / 2));
      now = await this.#open();
    }
    const of = (id: number): CloseOutcome => {
      const native = this.#asked.get(id);
      const open = now.has(current(native ?? id));
      const known = this.#known.get(id);
      if (known !== undefined || native === undefined) {
        return open ? (known ?? outcome(ItemStatus.SKIPPED, noTime)) : outcome(ItemStatus.NOT_FOUND);
      }
      if (!open) {
        return outcome(ItemStatus.OK);
      }
      return calm ? outcome(ItemStatus.BLOCKED_BY_PAGE, asks) : outcome(ItemStatus.UNKNOWN_OUTCOME, slow);
    };
    return new Map(tabs.map(({ id }) => [id, of(id)]));
  }
}

/** A page was shown, and another one is on its way. Without a page there is nobody to ask. */
function isLeaving(tab: TabInfo | undefined): boolean {
  return tab !== undefined && tab.url !== "" && tab.pendingUrl !== "" && !tab.discarded;
}

/** The tabs of a list that are open, once those that are closing have had the time for it. */
export async function stillOpen(context: Context, ids: readonly number[]): Promise<Set<number>> {
  const { browser, current, signal } = context;
  for (let waited = 0; ; waited += lookEveryMs) {
    const now = new Set((await browser.tabs.list()).map(({ id }) => id));
    const open = new Set(ids.filter((id) => now.has(current(id))));
    if (open.size === 0 || waited >= settleMs || signal.aborted) {
      return open;
    }
    await pause(lookEveryMs, signal);
  }
}

/**
 * With its last window the browser ends, and with it the device and the answer. So a command that would close every tab leaves
 * one empty tab, whose id is returned.
 */
async function keepBrowserOpen(context: Context, closing: ReadonlySet<number>): Promise<number | undefined> {
  const { tabs, windows } = context.browser;
  const [allWindows, allTabs] = await Promise.all([windows.list(), tabs.list()]);
  const normal = new Set(allWindows.filter(isNormal).map(({ id }) => id));
  const open = allTabs.filter(({ windowId }) => normal.has(windowId));
  const last = open.at(-1);
  if (last === undefined || open.some(({ id }) => !closing.has(id))) {
    return undefined;
  }
  return (await tabs.create({ windowId: last.windowId, active: false })).id;
}
