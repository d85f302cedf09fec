/** restoreTabs: tabs come back to the window, place and group that they had, and a saved tab counts as restored once it is open. */
import { create } from "@bufbuild/protobuf";
import { CommandFailure } from "@throwbar/es/errors";
import { type ItemOutcome, ItemStatus, type SavedTab } from "@throwbar/es/pb/state";
import { type RestoreTabs, type RestoreTabs_Result, RestoreTabs_ResultSchema } from "@throwbar/es/pb/tabs";
import { checkUrl } from "@throwbar/es/url";
import type { TabInfo } from "../platform/port.js";
import { address, isCut, sameAddress } from "../state/convert.js";
import { compositeId } from "../state/identity.js";
import type { Context, Recovery } from "./context.js";
import { pause } from "./deadline.js";
import { type Before, effectsOf, readBefore } from "./effects.js";
import { countOk, failedItem, item, notFound } from "./items.js";
import { regroup } from "./regroup.js";
import { placeNow, plan, type Room, type Row } from "./rooms.js";
import { whenFree } from "./targets.js";

/** So many tabs are opened at once, and written down at once. */
const atOnce = 20;
/** While so many of the opened tabs load, no more are opened, but not for long. */
const maxLoading = 20;
const loadMs = 1500;
const lookEveryMs = 50;
/** How long a tab that was being opened when the worker was stopped is looked for. */
const searchMs = 2000;

const blank = "the browser opened an empty tab instead; it is kept";
const noTime = "not its turn yet when the time ran out; it is kept";

/** Written down before some tabs are opened. */
interface RestoreNote {
  /** By saved id, the tabs that are open again. */
  readonly done: Readonly<Record<string, number>>;
  /** Windows that were opened, by the ids that the old ones had. */
  readonly windows: readonly (readonly [string, number])[];
  /** Saved ids of those that are opened now, with their addresses. */
  readonly opening: readonly (readonly [string, string])[];
  /** All tabs that were there before: one that is none of these is new. */
  readonly there: readonly number[];
  readonly before: Before;
}

class Restore {
  readonly #context: Context;
  readonly #before: Before;
  readonly #done = new Map<string, number>();
  readonly #items = new Map<string, ItemOutcome>();
  readonly #windows = new Map<string, number>();
  readonly #takenUp: boolean;
  readonly #finishing: Promise<unknown>[] = [];

  constructor(context: Context, before: Before, takenUp: boolean) {
    this.#context = context;
    this.#before = before;
    this.#takenUp = takenUp;
  }

  /** Takes over what was done before the worker was stopped. */
  async takeOver(note: RestoreNote, sinceBegun: () => number): Promise<void> {
    for (const [id, native] of Object.entries(note.done)) {
      this.#done.set(id, native);
    }
    for (const [old, native] of note.windows) {
      this.#windows.set(old, native);
    }
    for (const id of await this.#find(note, () => sinceBegun() >= searchMs)) {
      const detail = "the extension was stopped while it was opened, and it may be one of the new tabs; it is kept";
      this.#items.set(id, item(id, ItemStatus.UNKNOWN_OUTCOME, detail));
    }
  }

  /**
   * Finds tabs that were being opened by their addresses, and returns those of which nobody can say whether they are open: a new
   * tab may have gone to another address. Without any other new tab, what was not found was not opened.
   */
  async #find({ opening, there }: Pick<RestoreNote, "opening" | "there">, enough: () => boolean): Promise<string[]> {
    const old = new Set(there);
    while (true) {
      const tabs = await this.#context.browser.tabs.list();
      for (const [id, url] of opening) {
        const known = new Set(this.#done.values());
        const found = this.#done.has(id)
          ? undefined
          : tabs.find((tab) => !old.has(tab.id) && !known.has(tab.id) && sameAddress(tab, url));
        if (found !== undefined) {
          this.#done.set(id, found.id);
        }
      }
      const missing = opening.flatMap(([id]) => (this.#done.has(id) ? [] : [id]));
      if (missing.length === 0 || enough()) {
        const known = new Set(this.#done.values());
        return tabs.some(({ id }) => !old.has(id) && !known.has(id)) ? missing : [];
      }
      await pause(lookEveryMs);
    }
  }

  async run(ids: readonly string[]): Promise<RestoreTabs_Result> {
    const wanted = [...new Set(ids)];
    const rows = this.#openable(wanted);
    const rooms = await plan(this.#context, rows, this.#windows);
    let left = rooms.reduce((sum, room) => sum + this.#bunches(room).length, 0);
    for (const room of rooms) {
      for (const some of this.#bunches(room)) {
        await this.#open(room, some);
        left--;
        await this.#pace(left);
      }
      await this.#check(room.rows);
      await regroup(this.#context, room.rows, this.#done);
    }
    const openedWindows = [...this.#windows.values()];
    const effects = await effectsOf(this.#context, this.#before, { tabs: [], openedWindows });
    const items = wanted.map((id) => this.#items.get(id) ?? notFound(id));
    return create(RestoreTabs_ResultSchema, { restoredCount: countOk(items), items, ...effects });
  }

  /** What is to be opened, in portions. */
  #bunches(room: Room): Row[][] {
    const rest = room.rows.filter(({ id }) => !this.#done.has(id) && !this.#items.has(id));
    const out: Row[][] = [];
    for (let at = 0; at < rest.length; at += atOnce) {
      out.push(rest.slice(at, at + atOnce));
    }
    return out;
  }

  #openable(wanted: readonly string[]): Row[] {
    const saved = new Map(this.#context.saved.map((tab) => [tab.savedId, tab]));
    return wanted.flatMap((id) => {
      const row = saved.get(id);
      const verdict = row === undefined ? undefined : checkUrl(row.url);
      if (row === undefined || verdict === undefined) {
        return [];
      }
      if (!verdict.ok || isCut(row.url)) {
        const text = verdict.ok ? "this address was too long, and is not known to its end" : verdict.text;
        this.#items.set(id, item(id, ItemStatus.REFUSED_URL, `${text}; it is kept`));
        return [];
      }
      return [{ id, url: verdict.url, saved: row }];
    });
  }

  async #open(room: Room, rows: readonly Row[]): Promise<void> {
    const opening = rows.map(({ id, url }) => [id, url] as const);
    const there = (await this.#context.browser.tabs.list()).map(({ id }) => id);
    if (!(await this.#begin({ opening, there }))) {
      for (const { id } of rows) {
        this.#items.set(id, item(id, ItemStatus.SKIPPED, noTime));
      }
      return;
    }
    const rest = await this.#enter(room, rows);
    const { windowId } = room;
    if (windowId !== undefined) {
      await Promise.all(rest.map((row) => this.#openTab(row, windowId, room)));
    }
    if (rows.some(({ id }) => this.#items.get(id)?.status === ItemStatus.UNKNOWN_OUTCOME)) {
      await this.#lookOnce({ opening, there });
    }
  }

  /** False if it is too late for more. Throws if it is too late for anything. */
  async #begin(now: Pick<RestoreNote, "opening" | "there">): Promise<boolean> {
    const note: RestoreNote = {
      ...now,
      done: Object.fromEntries(this.#done),
      windows: [...this.#windows],
      before: this.#before,
    };
    try {
      await this.#context.begin(note);
      return !this.#context.signal.aborted;
    } catch (error) {
      if (error instanceof CommandFailure && (this.#takenUp || this.#items.size > 0 || this.#done.size > 0)) {
        return false;
      }
      throw error;
    }
  }

  /** The browser did not answer in time; what it has done by now is seen. */
  async #lookOnce(note: Pick<RestoreNote, "opening" | "there">): Promise<void> {
    const unknown = new Set(await this.#find(note, () => true));
    for (const [id] of note.opening) {
      if (this.#done.has(id) && this.#items.get(id)?.status === ItemStatus.UNKNOWN_OUTCOME && !unknown.has(id)) {
        this.#items.delete(id);
      }
    }
  }

  /** Sees to it that there is a window, with one of the tabs if it is opened for them. Returns the tabs that are left to open. */
  #enter(room: Room, rows: readonly Row[]): Promise<readonly Row[]> {
    return this.#context.places.inTurn(room.old, async () => {
      let rest = rows;
      if (room.windowId === undefined) {
        room.windowId = await placeNow(this.#context, room.old);
        room.shared = room.windowId !== undefined;
      }
      while (room.windowId === undefined && rest.length > 0) {
        await this.#openWindow(room, rest[0] as Row);
        rest = rest.slice(1);
      }
      return rest;
    });
  }

  async #openWindow(room: Room, row: Row): Promise<void> {
    const { browser, places } = this.#context;
    await this.#try(row, async () => {
      const tab = await browser.windows.create(row.url);
      room.windowId = tab.windowId;
      this.#windows.set(room.old, tab.windowId);
      await places.keep(room.old, tab.windowId);
      // At once: those that come next have their places behind it.
      return row.saved.pinned ? browser.tabs.update(tab.id, { pinned: true }) : tab;
    });
  }

  async #openTab(row: Row, windowId: number, room: Room): Promise<void> {
    const { browser } = this.#context;
    const { pinned } = row.saved;
    const index = room.shared ? row.saved.index : room.indexOf(row);
    await this.#try(row, () =>
      browser.tabs.create({
        url: row.url,
        windowId,
        active: false,
        pinned,
        ...(index === undefined ? {} : { index }),
      }),
    );
  }

  /** Opens one tab. A refusal costs only this one. */
  async #try({ id }: Row, open: () => Promise<TabInfo>): Promise<void> {
    try {
      this.#done.set(id, (await whenFree(this.#context, open)).id);
    } catch (error) {
      this.#items.set(id, failedItem(id, error));
    }
  }

  /** A person who restores a hundred tabs does not want a hundred pages to load at once. */
  async #pace(bunchesLeft: number): Promise<void> {
    if (bunchesLeft === 0) {
      return;
    }
    const { browser, deadline, signal } = this.#context;
    const most = Math.min(loadMs, deadline.toAnswer() / (bunchesLeft + 1) / 2);
    const own = new Set(this.#done.values());
    for (let waited = 0; waited < most && !signal.aborted; waited += lookEveryMs) {
      const loading = (await browser.tabs.list()).filter((tab) => own.has(tab.id) && tab.loading).length;
      if (loading < maxLoading) {
        return;
      }
      await pause(lookEveryMs, signal);
    }
  }

  /** A tab counts once it is seen with an address. An address that the browser swallows leaves an empty one and no error. */
  async #check(rows: readonly Row[]): Promise<void> {
    const { browser, identity, current } = this.#context;
    const now = new Map((await browser.tabs.list()).map((tab) => [tab.id, tab]));
    for (const { id, saved } of rows) {
      const native = this.#done.get(id);
      const tab = native === undefined ? undefined : now.get(current(native));
      if (native === undefined || this.#items.has(id)) {
        continue;
      }
      if (tab !== undefined && address(tab) !== "") {
        this.#items.set(id, item(id, ItemStatus.OK, "", compositeId(identity, "tab", tab.id)));
        this.#finish(tab, saved);
        continue;
      }
      this.#done.delete(id);
      this.#items.set(
        id,
        tab === undefined
          ? item(id, ItemStatus.UNSPECIFIED, "the tab was gone again at once; it is kept")
          : item(id, ItemStatus.REFUSED_URL, blank),
      );
      if (tab !== undefined) {
        // It is ours, and there is nothing on it.
        await browser.tabs.remove([tab.id]).catch(() => undefined);
      }
    }
    await Promise.all(this.#finishing.splice(0));
  }

  /** What a tab is given once it is open: that it is heard is less than that it is there. */
  #finish(tab: TabInfo, saved: SavedTab): void {
    const pinned = saved.pinned && !tab.pinned ? { pinned: true } : {};
    const muted = saved.muted && !tab.muted ? { muted: true } : {};
    const change = { ...pinned, ...muted };
    if (Object.keys(change).length > 0) {
      const done = whenFree(this.#context, () => this.#context.browser.tabs.update(tab.id, change));
      this.#finishing.push(done.catch(() => undefined));
    }
  }
}

export async function restoreTabs(action: RestoreTabs, context: Context): Promise<RestoreTabs_Result> {
  return new Restore(context, await readBefore(context, []), false).run(action.savedIds);
}

/** What is open stays counted, what was being opened is looked for, and the rest is opened while there is time. */
export async function recoverRestoreTabs(action: RestoreTabs, recovery: Recovery): Promise<RestoreTabs_Result> {
  const note = recovery.note as RestoreNote;
  const restore = new Restore(recovery, note.before, true);
  await restore.takeOver(note, recovery.sinceBegun);
  return restore.run(action.savedIds);
}
