/** closeTabs and closeTabsByUrl. */
import { create } from "@bufbuild/protobuf";
import { type ItemOutcome, ItemStatus } from "@throwbar/es/pb/state";
import {
  type CloseTabs,
  type CloseTabs_Result,
  CloseTabs_ResultSchema,
  type CloseTabsByUrl,
  type CloseTabsByUrl_Result,
  CloseTabsByUrl_ResultSchema,
} from "@throwbar/es/pb/tabs";
import { urlMatcher } from "@throwbar/es/url";
import { address } from "../state/convert.js";
import { compositeId } from "../state/identity.js";
import { closeOnce, stillOpen } from "./closing.js";
import type { Context, Recovery } from "./context.js";
import { countOk, item, notFound } from "./items.js";
import { findTabs, type Target } from "./targets.js";

/** Written down before the first tab is closed. */
interface CloseNote {
  /** By the id that the caller gave, the browser's own. */
  readonly closing: Readonly<Record<string, number>>;
  readonly missing: readonly string[];
}

function closeNote(targets: readonly Target[]): CloseNote {
  const found = targets.flatMap(({ id, tab }) => (tab === undefined ? [] : [[id, tab.id] as const]));
  return {
    closing: Object.fromEntries(found),
    missing: targets.filter(({ tab }) => tab === undefined).map(({ id }) => id),
  };
}

export async function closeTabs(action: CloseTabs, context: Context): Promise<CloseTabs_Result> {
  const targets = await findTabs(context, action.tabIds);
  const note = closeNote(targets);
  const items = await closeAll(context, note);
  const order = new Map(targets.map(({ id }, index) => [id, index]));
  items.sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0));
  return create(CloseTabs_ResultSchema, { closedCount: countOk(items), items });
}

async function closeAll(context: Context, note: CloseNote): Promise<ItemOutcome[]> {
  const ids = Object.values(note.closing);
  const missing = note.missing.map(notFound);
  if (ids.length === 0) {
    return missing;
  }
  await context.begin(note);
  const outcomes = await closeOnce(context, ids);
  return [
    ...Object.entries(note.closing).map(([id, native]) => {
      const { status, detail } = outcomes.get(native) ?? { status: ItemStatus.UNKNOWN_OUTCOME, detail: "" };
      return item(id, status, detail);
    }),
    ...missing,
  ];
}

/** Tells by reading what was closed. What is still open stays open: the page may be asking the person. */
async function readBack(recovery: Recovery): Promise<ItemOutcome[]> {
  const note = recovery.note as CloseNote;
  const open = await stillOpen(recovery, Object.values(note.closing));
  return [
    ...Object.entries(note.closing).map(([id, native]) =>
      open.has(native)
        ? item(id, ItemStatus.UNKNOWN_OUTCOME, "still open after the browser stopped the extension; not tried again")
        : item(id, ItemStatus.OK),
    ),
    ...note.missing.map(notFound),
  ];
}

export async function recoverCloseTabs(_action: CloseTabs, recovery: Recovery): Promise<CloseTabs_Result> {
  const items = await readBack(recovery);
  return create(CloseTabs_ResultSchema, { closedCount: countOk(items), items });
}

export async function closeTabsByUrl(action: CloseTabsByUrl, context: Context): Promise<CloseTabsByUrl_Result> {
  const matches = urlMatcher(action.url);
  const found = (await context.browser.tabs.list()).filter((tab) => matches(address(tab)));
  const closing = found.map((tab) => [compositeId(context.identity, "tab", tab.id), tab.id] as const);
  return byUrl(await closeAll(context, { closing: Object.fromEntries(closing), missing: [] }));
}

function byUrl(items: ItemOutcome[]): CloseTabsByUrl_Result {
  const closedCount = countOk(items);
  const reason = items.length === 0 ? "not_found" : "";
  return create(CloseTabsByUrl_ResultSchema, { closed: closedCount > 0, closedCount, items, reason });
}

/** Taken up like closeTabs: a tab that was asked to close must not be asked twice. */
export async function recoverCloseTabsByUrl(
  _action: CloseTabsByUrl,
  recovery: Recovery,
): Promise<CloseTabsByUrl_Result> {
  return byUrl(await readBack(recovery));
}
