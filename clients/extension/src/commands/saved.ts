/** saveTabs. The server keeps the saved tabs; the device says which ones can be opened again, and closes no others. */
import { create } from "@bufbuild/protobuf";
import { type ItemOutcome, ItemStatus, type SavedTab } from "@throwbar/es/pb/state";
import { type SaveTabs, type SaveTabs_Result, SaveTabs_ResultSchema } from "@throwbar/es/pb/tabs";
import { checkUrl } from "@throwbar/es/url";
import { address, maxUrlBytes } from "../state/convert.js";
import { compositeId } from "../state/identity.js";
import { type Closed, closeTabsOnce } from "./closing.js";
import type { Context, Recovery } from "./context.js";
import { type Before, effectsOf, readBefore } from "./effects.js";
import { countOk, item, notFound } from "./items.js";
import { goOn } from "./resume.js";
import { type FoundTarget, findTabs, type Target } from "./targets.js";

/** Written down before the first saved tab is closed. */
interface SaveNote {
  readonly items: readonly {
    readonly id: string;
    readonly status: ItemStatus;
    readonly detail: string;
    readonly newId: string;
  }[];
  /** The tabs to close, by the ids that the caller gave, and where they were when they were saved. */
  readonly closing: readonly { readonly of: string; readonly id: number; readonly url: string }[];
  readonly before: Before;
}

/** A tab whose address could not be opened again is not saved, and so not closed. */
function savedItem({ id, tab, newId }: Target, kept: ReadonlyMap<string, SavedTab> | undefined): ItemOutcome {
  if (tab === undefined) {
    return notFound(id);
  }
  if (tab.private) {
    return item(id, ItemStatus.SKIPPED, "it is in a private window; such tabs are never saved", newId);
  }
  const url = address(tab);
  const verdict = checkUrl(url);
  if (!verdict.ok) {
    return item(id, ItemStatus.REFUSED_URL, `this address cannot be opened again: ${verdict.text}`, newId);
  }
  if (new TextEncoder().encode(url).length > maxUrlBytes) {
    return item(id, ItemStatus.REFUSED_URL, `this address is too long to be kept: over ${maxUrlBytes} bytes`, newId);
  }
  if (kept !== undefined && (kept.get(id) ?? kept.get(newId))?.url !== url) {
    return item(id, ItemStatus.BUSY, "it has just gone to another address; save it again", newId);
  }
  return item(id, ItemStatus.OK, "", newId);
}

export async function saveTabs(action: SaveTabs, context: Context): Promise<SaveTabs_Result> {
  const targets = await findTabs(context, action.tabIds);
  // What the server keeps is what it knew of the tab, and that may be a moment old.
  const rows = context.saved.length === 0 ? undefined : new Map(context.saved.map((row) => [row.tabId, row]));
  const items = targets.map((target) => savedItem(target, rows));
  const saved = targets.filter(
    (target, at): target is FoundTarget => target.tab !== undefined && items[at]?.status === ItemStatus.OK,
  );
  if (action.close !== true || saved.length === 0) {
    return create(SaveTabs_ResultSchema, { savedCount: countOk(items), items });
  }
  const note: SaveNote = {
    items: items.map(({ id, status, detail, newId }) => ({ id, status, detail, newId })),
    closing: saved.map(({ id, tab }) => ({ of: id, id: tab.id, url: address(tab) })),
    before: await readBefore(
      context,
      saved.map(({ tab }) => tab),
    ),
  };
  await context.begin(note);
  return told(context, note, await closeTabsOnce(context, note.closing));
}

/** The item says that the tab is saved; its detail, that it is still open, and why. */
async function told(context: Context, note: SaveNote, { outcomes, openedTabs }: Closed): Promise<SaveTabs_Result> {
  const still = new Map(
    note.closing.flatMap(({ of, id }) => {
      const { status, detail } = outcomes.get(id) ?? { status: ItemStatus.UNKNOWN_OUTCOME, detail: "" };
      return status === ItemStatus.OK ? [] : [[of, { gone: status === ItemStatus.NOT_FOUND, detail, id }] as const];
    }),
  );
  const items = note.items.map(({ id, status, detail, newId }) => {
    const open = still.get(id);
    if (open === undefined) {
      return item(id, status, detail, newId);
    }
    const now = compositeId(context.identity, "tab", context.current(open.id));
    return open.gone
      ? item(id, status, "saved; somebody else closed it", newId)
      : item(id, status, `saved, and still open: ${open.detail}`, now === id ? "" : now);
  });
  const closed = note.closing.flatMap(({ of, id }) => (still.has(of) ? [] : [id]));
  const mayFocus = note.before.tabs.filter(({ id }) => !closed.includes(id)).map(({ windowId }) => windowId);
  const effects = await effectsOf(context, note.before, { tabs: closed, openedTabs, mayFocus });
  return create(SaveTabs_ResultSchema, {
    savedCount: countOk(items),
    closedCount: closed.length,
    items,
    ...effects,
  });
}

export async function recoverSaveTabs(_action: SaveTabs, recovery: Recovery): Promise<SaveTabs_Result> {
  const note = recovery.note as SaveNote;
  return told(recovery, note, await goOn(recovery, note.closing, false));
}
