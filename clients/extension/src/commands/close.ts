/** closeTabs and closeTabsByUrl. */
import { create } from "@bufbuild/protobuf";
import { type ItemOutcome, ItemStatus, type SideEffects } from "@throwbar/es/pb/state";
import {
  type CloseTabs,
  type CloseTabs_Result,
  CloseTabs_ResultSchema,
  type CloseTabsByUrl,
  type CloseTabsByUrl_Result,
  CloseTabsByUrl_ResultSchema,
} from "@throwbar/es/pb/tabs";
import { urlMatcher } from "@throwbar/es/url";
import type { TabInfo } from "../platform/port.js";
import { address, shownAddress } from "../state/convert.js";
import { compositeId } from "../state/identity.js";
import { type Closing, closeTabsOnce } from "./closing.js";
import type { Context, Recovery } from "./context.js";
import { type Before, effectsOf, readBefore } from "./effects.js";
import { countOk, item, notFound } from "./items.js";
import { type Closed, goOn } from "./resume.js";
import { findTabs } from "./targets.js";

/** Written down before the first tab is closed. */
interface CloseNote {
  /** By the ids that the caller gave, in that order, the browser's own; null for what there was not. */
  readonly tabs: readonly (readonly [string, number | null])[];
  readonly before: Before;
}

interface Outcome {
  readonly items: ItemOutcome[];
  readonly sideEffects?: SideEffects;
}

const closings = ({ tabs }: CloseNote): Closing[] => tabs.flatMap(([, id]) => (id === null ? [] : [{ id }]));

async function noteOf(context: Context, targets: readonly { id: string; tab: TabInfo | undefined }[]) {
  const found = targets.flatMap(({ tab }) => tab ?? []);
  return {
    tabs: targets.map(({ id, tab }) => [id, tab?.id ?? null] as const),
    before: await readBefore(context, found),
  } satisfies CloseNote;
}

async function close(context: Context, note: CloseNote, force: boolean): Promise<Outcome> {
  const tabs = closings(note);
  if (tabs.length === 0) {
    return { items: note.tabs.map(([id]) => notFound(id)) };
  }
  await context.begin(note);
  return told(context, note, await closeTabsOnce(context, tabs, force));
}

/** An item keeps the id that the caller gave; a tab that is still open may have another one now. */
async function told(context: Context, note: CloseNote, { outcomes, openedTabs }: Closed): Promise<Outcome> {
  const items = note.tabs.map(([id, native]) => {
    const known = native === null ? undefined : outcomes.get(native);
    if (native === null || known === undefined) {
      return notFound(id);
    }
    const now = compositeId(context.identity, "tab", context.current(native));
    const open = known.status !== ItemStatus.OK && known.status !== ItemStatus.NOT_FOUND;
    return item(id, known.status, known.detail, open && now !== id ? now : "");
  });
  const closed = [...outcomes].flatMap(([id, { status }]) => (status === ItemStatus.OK ? [id] : []));
  // A page that asks comes to the front, and its window may come with it.
  const mayFocus = note.before.tabs.filter(({ id }) => !closed.includes(id)).map(({ windowId }) => windowId);
  return { items, ...(await effectsOf(context, note.before, { tabs: closed, openedTabs, mayFocus })) };
}

export async function closeTabs(action: CloseTabs, context: Context): Promise<CloseTabs_Result> {
  const note = await noteOf(context, await findTabs(context, action.tabIds));
  return result(await close(context, note, action.force === true));
}

function result(outcome: Outcome): CloseTabs_Result {
  return create(CloseTabs_ResultSchema, { closedCount: countOk(outcome.items), ...outcome });
}

async function takeUp(recovery: Recovery, force: boolean): Promise<Outcome> {
  const note = recovery.note as CloseNote;
  return told(recovery, note, await goOn(recovery, closings(note), force));
}

export async function recoverCloseTabs(action: CloseTabs, recovery: Recovery): Promise<CloseTabs_Result> {
  return result(await takeUp(recovery, action.force === true));
}

export async function closeTabsByUrl(action: CloseTabsByUrl, context: Context): Promise<CloseTabsByUrl_Result> {
  const matches = urlMatcher(action.url);
  const found = (await context.browser.tabs.list()).filter(
    // As the browser has it, and as the server lists it.
    (tab) => matches(address(tab)) || matches(shownAddress(address(tab))),
  );
  const targets = found.map((tab) => ({ id: compositeId(context.identity, "tab", tab.id), tab }));
  return byUrl(await close(context, await noteOf(context, targets), action.force === true));
}

function byUrl(outcome: Outcome): CloseTabsByUrl_Result {
  const closedCount = countOk(outcome.items);
  const reason = outcome.items.length === 0 ? "not_found" : "";
  return create(CloseTabsByUrl_ResultSchema, { closed: closedCount > 0, closedCount, reason, ...outcome });
}

/** Taken up like closeTabs: a tab that was asked to close must not be asked twice, and only those that were named then are meant. */
export async function recoverCloseTabsByUrl(
  action: CloseTabsByUrl,
  recovery: Recovery,
): Promise<CloseTabsByUrl_Result> {
  return byUrl(await takeUp(recovery, action.force === true));
}
