/** saveTabs and restoreTabs. The server keeps the saved tabs; the device says which ones it could read and open. */
import { create } from "@bufbuild/protobuf";
import { Colour, type ItemOutcome, ItemStatus, type SavedTab } from "@throwbar/es/pb/state";
import {
  type RestoreTabs,
  type RestoreTabs_Result,
  RestoreTabs_ResultSchema,
  type SaveTabs,
  type SaveTabs_Result,
  SaveTabs_ResultSchema,
} from "@throwbar/es/pb/tabs";
import { checkUrl } from "@throwbar/es/url";
import type { TabInfo } from "../platform/port.js";
import { address, groupColour } from "../state/convert.js";
import { compositeId, nativeId } from "../state/identity.js";
import { closeOnce, stillOpen } from "./closing.js";
import type { Context, Recovery } from "./context.js";
import { countOk, failedItem, item, notFound } from "./items.js";
import { createTab, findOpened, frontWindow, type OpenNote, openNote } from "./open.js";
import { findTabs, isNormal, type Target } from "./targets.js";

/** Written down before the first saved tab is closed: the device's own copy of what is saved. */
interface SaveNote {
  readonly items: readonly { readonly id: string; readonly status: ItemStatus; readonly detail: string }[];
  readonly closing: Readonly<Record<string, number>>;
  readonly tabs: readonly TabInfo[];
}

/** A tab whose address could not be opened again is not saved, and so not closed. */
function savedItem({ id, tab, newId }: Target): ItemOutcome {
  if (tab === undefined) {
    return notFound(id);
  }
  const verdict = checkUrl(address(tab));
  return verdict.ok
    ? item(id, ItemStatus.OK, "", newId)
    : item(id, ItemStatus.REFUSED_URL, `this address cannot be opened again: ${verdict.text}`);
}

export async function saveTabs(action: SaveTabs, context: Context): Promise<SaveTabs_Result> {
  const targets = await findTabs(context, action.tabIds);
  const items = targets.map(savedItem);
  const savedCount = countOk(items);
  const saved = targets.flatMap(({ id, tab }, at) =>
    tab !== undefined && items[at]?.status === ItemStatus.OK ? [{ id, tab }] : [],
  );
  if (action.close !== true || saved.length === 0) {
    return create(SaveTabs_ResultSchema, { savedCount, items });
  }
  const closing = Object.fromEntries(saved.map(({ id, tab }) => [id, tab.id]));
  const tabs = saved.map(({ tab }) => tab);
  await context.begin({
    items: items.map(({ id, status, detail }) => ({ id, status, detail })),
    closing,
    tabs,
  } satisfies SaveNote);
  const outcomes = await closeOnce(context, Object.values(closing));
  const open = new Set([...outcomes].filter(([, { status }]) => status !== ItemStatus.OK).map(([id]) => id));
  return closedAfter(items, closing, open);
}

/** The item says that the tab is saved; its detail, that it is still open. */
function closedAfter(
  items: readonly ItemOutcome[],
  closing: Readonly<Record<string, number>>,
  open: ReadonlySet<number>,
): SaveTabs_Result {
  let closedCount = 0;
  for (const each of items) {
    const native = Object.hasOwn(closing, each.id) ? closing[each.id] : undefined;
    if (native !== undefined && open.has(native)) {
      each.detail = "saved, and still open: the page asks before it is left";
    } else if (native !== undefined) {
      closedCount++;
    }
  }
  return create(SaveTabs_ResultSchema, { savedCount: countOk(items), closedCount, items: [...items] });
}

export async function recoverSaveTabs(_action: SaveTabs, recovery: Recovery): Promise<SaveTabs_Result> {
  const note = recovery.note as SaveNote;
  const items = note.items.map(({ id, status, detail }) => item(id, status, detail));
  return closedAfter(items, note.closing, await stillOpen(recovery, Object.values(note.closing)));
}

/** Written down before each tab is opened. */
interface RestoreNote {
  /** By saved id, the tabs that are open again. */
  readonly done: Readonly<Record<string, number>>;
  readonly opening: string;
  readonly open: OpenNote;
}

class Restore {
  readonly #context: Context;
  readonly #done = new Map<string, number>();
  readonly #items = new Map<string, ItemOutcome>();

  constructor(context: Context) {
    this.#context = context;
  }

  /** Takes over what was done before the worker was stopped. */
  async takeOver(note: RestoreNote): Promise<void> {
    for (const [id, native] of Object.entries(note.done)) {
      this.#opened(id, native);
    }
    const found = await findOpened(this.#context, note.open, new Set(this.#done.values()));
    if (found === undefined) {
      const detail = "the browser stopped the extension while this tab was opened";
      this.#items.set(note.opening, item(note.opening, ItemStatus.UNKNOWN_OUTCOME, detail));
    } else {
      this.#opened(note.opening, found.id);
    }
  }

  #opened(id: string, native: number): void {
    this.#done.set(id, native);
    this.#items.set(id, item(id, ItemStatus.OK, "", compositeId(this.#context.identity, "tab", native)));
  }

  async run(ids: readonly string[]): Promise<RestoreTabs_Result> {
    const context = this.#context;
    const saved = new Map(context.saved.map((tab) => [tab.savedId, tab]));
    const wanted = [...new Set(ids)];
    const order = wanted.flatMap((id) => saved.get(id) ?? []).sort((a, b) => a.index - b.index);
    for (const tab of order) {
      if (!this.#items.has(tab.savedId)) {
        await this.#restore(tab);
      }
    }
    await this.#regroup(order);
    const items = wanted.map((id) => this.#items.get(id) ?? notFound(id));
    return create(RestoreTabs_ResultSchema, { restoredCount: countOk(items), items });
  }

  async #restore(saved: SavedTab): Promise<void> {
    const verdict = checkUrl(saved.url);
    const id = saved.savedId;
    if (!verdict.ok) {
      this.#items.set(id, item(id, ItemStatus.REFUSED_URL, verdict.text));
      return;
    }
    try {
      const windowId = await this.#windowFor(saved);
      await this.#context.begin({
        done: Object.fromEntries(this.#done),
        opening: id,
        open: await openNote(this.#context, verdict.url),
      } satisfies RestoreNote);
      const { pinned, index, muted } = saved;
      const place = windowId === undefined ? {} : { windowId, index };
      const tab = await createTab(this.#context, { url: verdict.url, active: false, pinned, ...place });
      if (muted) {
        await this.#context.browser.tabs.update(tab.id, { muted });
      }
      this.#opened(id, tab.id);
    } catch (error) {
      this.#items.set(id, failedItem(id, error));
    }
  }

  /** The window it was in, if that is still there. */
  async #windowFor(saved: SavedTab): Promise<number | undefined> {
    const native = nativeId(this.#context.identity, "window", saved.windowId);
    const windows = await this.#context.browser.windows.list();
    return windows.find((each) => each.id === native && isNormal(each))?.id ?? (await frontWindow(this.#context));
  }

  /** Tabs that were in one group come into one again: into the old one, if it is still there. */
  async #regroup(order: readonly SavedTab[]): Promise<void> {
    const groups = new Map<string, SavedTab[]>();
    for (const saved of order) {
      const key = saved.groupId || (saved.groupTitle === "" ? "" : `${saved.groupTitle}/${saved.groupColour}`);
      if (key !== "" && this.#done.has(saved.savedId) && !saved.pinned) {
        groups.set(key, [...(groups.get(key) ?? []), saved]);
      }
    }
    for (const members of groups.values()) {
      // The tabs are open; that they are in no group is less than that.
      await this.#groupAgain(members).catch(() => undefined);
    }
  }

  async #groupAgain(members: readonly SavedTab[]): Promise<void> {
    const { browser, identity } = this.#context;
    const ids = members.flatMap(({ savedId }) => this.#done.get(savedId) ?? []);
    const [first] = members;
    const tab = ids[0] === undefined ? undefined : await browser.tabs.get(ids[0]);
    if (first === undefined || tab === undefined) {
      return;
    }
    const native = nativeId(identity, "group", first.groupId);
    const old = (await browser.groups.list()).find(({ id, windowId }) => id === native && windowId === tab.windowId);
    const groupId = await browser.tabs.group(ids, old === undefined ? { windowId: tab.windowId } : { groupId: old.id });
    if (old === undefined) {
      const colour = groupColour(first.groupColour ?? Colour.UNSPECIFIED);
      await browser.groups.update(groupId, { title: first.groupTitle, ...(colour === undefined ? {} : { colour }) });
    }
  }
}

export function restoreTabs(action: RestoreTabs, context: Context): Promise<RestoreTabs_Result> {
  return new Restore(context).run(action.savedIds);
}

/** What is open stays counted, what was being opened is looked for, and the rest is opened. */
export async function recoverRestoreTabs(action: RestoreTabs, recovery: Recovery): Promise<RestoreTabs_Result> {
  const restore = new Restore(recovery);
  await restore.takeOver(recovery.note as RestoreNote);
  return restore.run(action.savedIds);
}
