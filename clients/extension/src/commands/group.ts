/** groupTabs and ungroupTabs. */
import { create } from "@bufbuild/protobuf";
import { CommandFailure } from "@throwbar/es/errors";
import { ErrorCode } from "@throwbar/es/pb/command";
import { Colour, type ItemOutcome, ItemStatus } from "@throwbar/es/pb/state";
import {
  type GroupTabs,
  type GroupTabs_Result,
  GroupTabs_ResultSchema,
  type UngroupTabs,
  type UngroupTabs_Result,
  UngroupTabs_ResultSchema,
} from "@throwbar/es/pb/tabs";
import { BrowserError, type GroupInfo, type TabInfo, type WindowInfo } from "../platform/port.js";
import { groupColour } from "../state/convert.js";
import { compositeId } from "../state/identity.js";
import type { Context, Recovery } from "./context.js";
import { type Before, beginWith, effectsOf, readBefore, unfolds } from "./effects.js";
import { countOk, failedItem, item, notFound, otherPrivacy, unchanged } from "./items.js";
import {
  eachTab,
  findTabs,
  findWindow,
  isNormal,
  readBack,
  singleFailure,
  type Target,
  tabsById,
  whenFree,
} from "./targets.js";

/** What a tab has to meet. */
interface Terms {
  readonly normal: ReadonlySet<number>;
  readonly into: WindowInfo | undefined;
  readonly allowUnpin: boolean;
}

/** Why a tab is left out of a group; undefined if it is not. */
function leftOut({ id, tab }: Target, { normal, into, allowUnpin }: Terms): ItemOutcome | undefined {
  if (tab === undefined) {
    return notFound(id);
  }
  if (into !== undefined && into.private !== tab.private) {
    return item(id, ItemStatus.UNSUPPORTED_WINDOW, otherPrivacy);
  }
  if (!normal.has(tab.windowId)) {
    return item(id, ItemStatus.UNSUPPORTED_WINDOW, "only tabs of normal windows can be grouped");
  }
  return tab.pinned && !allowUnpin
    ? item(id, ItemStatus.SKIPPED, "it is pinned, and grouping would unpin it; allowUnpin lets it")
    : undefined;
}

interface Plan {
  readonly targets: readonly Target[];
  /** By the caller's ids, of those that are left out. */
  readonly leftOut: ReadonlyMap<string, ItemOutcome>;
  readonly tabs: readonly TabInfo[];
  /** The window that was named. */
  readonly into: WindowInfo | undefined;
  /** Undefined if there is nothing to group. */
  readonly windowId: number | undefined;
}

async function plan(action: GroupTabs, context: Context): Promise<Plan> {
  const into = action.windowId === undefined ? undefined : await findWindow(context, action.windowId);
  if (into !== undefined && !isNormal(into)) {
    throw new CommandFailure(ErrorCode.FAILED, `a ${into.kind} window has no groups; choose a normal one`);
  }
  const [targets, windows] = await Promise.all([findTabs(context, action.tabIds), context.browser.windows.list()]);
  const normal = new Set(windows.filter(isNormal).map(({ id }) => id));
  const out = new Map<string, ItemOutcome>();
  for (const target of targets) {
    const why = leftOut(target, { normal, into, allowUnpin: action.allowUnpin ?? false });
    if (why !== undefined) {
      out.set(target.id, why);
    }
  }
  const tabs = targets.flatMap(({ id, tab }) => (tab === undefined || out.has(id) ? [] : [tab]));
  return { targets, leftOut: out, tabs, into, windowId: into?.id ?? tabs[0]?.windowId };
}

/** Only its own rows: whether the tabs are in one window matters only before they are grouped. */
function inOneWindow(action: GroupTabs, { tabs, windowId }: Plan): void {
  if (action.windowId === undefined && tabs.some((tab) => tab.windowId !== windowId)) {
    throw new CommandFailure(
      ErrorCode.INVALID,
      "the tabs are in different windows; give the windowId of the one to move them all to, or group those of each window by themselves",
    );
  }
}

export async function groupTabs(action: GroupTabs, context: Context): Promise<GroupTabs_Result> {
  const planned = await plan(action, context);
  const { targets, tabs, windowId } = planned;
  if (windowId === undefined || tabs.length === 0) {
    const items = targets.map(({ id }) => planned.leftOut.get(id) ?? notFound(id));
    return create(GroupTabs_ResultSchema, { items });
  }
  inOneWindow(action, planned);
  const before = await readBefore(context, tabs);
  await context.begin(before);
  const made = await makeGroup(context, tabs, windowId);
  if (typeof made !== "number") {
    return failedGroup(context, planned, made);
  }
  const named = await setLook(context, made, action);
  return grouped(context, made, planned, before, named);
}

/** The browser groups all or, if some have just been closed, none: then the others are tried again. */
async function makeGroup(context: Context, tabs: readonly TabInfo[], windowId: number): Promise<number | BrowserError> {
  let ids = tabs.map(({ id }) => id);
  for (;;) {
    const some = ids;
    try {
      return await whenFree(context, () => context.browser.tabs.group(some, { windowId }));
    } catch (error) {
      const gone = error instanceof BrowserError && error.kind === "noTab" ? error.missingId : undefined;
      ids = some.filter((id) => id !== gone);
      if (ids.length === 0 || (error instanceof BrowserError && error.kind === "noWindow")) {
        return error as BrowserError;
      }
      if (ids.length === some.length) {
        throw singleFailure(error);
      }
    }
  }
}

/** Nothing was grouped: the window or the tabs closed meanwhile. */
async function failedGroup(context: Context, planned: Plan, error: BrowserError): Promise<GroupTabs_Result> {
  const now = await tabsById(
    context,
    planned.tabs.map(({ id }) => id),
  );
  const items = planned.targets.map(
    ({ id, tab }) =>
      planned.leftOut.get(id) ?? (tab !== undefined && now.has(tab.id) ? failedItem(id, error) : notFound(id)),
  );
  return create(GroupTabs_ResultSchema, { items });
}

/** Gives the group the title and colour that were asked for. Returns why that did not work; empty if it did. */
async function setLook(context: Context, groupId: number, action: GroupTabs): Promise<string> {
  const colour = groupColour(action.colour ?? Colour.UNSPECIFIED);
  const { title } = action;
  if (title === undefined && colour === undefined) {
    return "";
  }
  const look = { ...(title === undefined ? {} : { title }), ...(colour === undefined ? {} : { colour }) };
  try {
    await whenFree(context, () => context.browser.groups.update(groupId, look));
    return "";
  } catch (error) {
    // The group exists, and is what was asked for most.
    return `grouped, but without its title and colour: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Counts what is in the group now, not what was asked for. */
async function grouped(
  context: Context,
  groupId: number,
  planned: Plan,
  before: Before | undefined,
  detail: string,
): Promise<GroupTabs_Result> {
  const now = await tabsById(
    context,
    planned.tabs.map(({ id }) => context.current(id)),
  );
  const inside: number[] = [];
  const items = planned.targets.map(({ id, tab, newId }) => {
    const known = planned.leftOut.get(id);
    const is = tab === undefined ? undefined : now.get(context.current(tab.id));
    if (known !== undefined || tab === undefined || is === undefined) {
      return known ?? notFound(id);
    }
    if (is.groupId !== groupId) {
      return unchanged(id, newId);
    }
    inside.push(tab.id);
    return item(id, ItemStatus.OK, detail, newId);
  });
  const groupedCount = countOk(items);
  return create(GroupTabs_ResultSchema, {
    groupId: groupedCount === 0 ? "" : compositeId(context.identity, "group", groupId),
    groupedCount,
    items,
    ...(await effectsOf(context, before, { tabs: inside, mayFocus: unfolds(planned.into) })),
  });
}

/** If all of the tabs are in one group that looks as asked, that was it. */
export async function recoverGroupTabs(action: GroupTabs, recovery: Recovery): Promise<GroupTabs_Result> {
  const planned = await plan(action, recovery);
  const before = (recovery.note ?? undefined) as Before | undefined;
  const groupId = planned.tabs[0]?.groupId;
  const group = (await recovery.browser.groups.list()).find(({ id }) => id === groupId);
  if (group === undefined || !asAsked(action, planned, group)) {
    throw new CommandFailure(ErrorCode.INTERRUPTED, "the browser stopped the extension while the tabs were grouped");
  }
  return grouped(recovery, group.id, planned, before, "");
}

function asAsked(action: GroupTabs, { tabs, windowId }: Plan, group: GroupInfo): boolean {
  const colour = groupColour(action.colour ?? Colour.UNSPECIFIED);
  return (
    tabs.every((tab) => tab.groupId === group.id) &&
    group.windowId === windowId &&
    (action.title === undefined || action.title === group.title) &&
    (colour === undefined || colour === group.colour)
  );
}

export function ungroupTabs(action: UngroupTabs, context: Context): Promise<UngroupTabs_Result> {
  return ungroup(action, context, undefined);
}

/** Takes out those that are still in a group, unless it is too late, and compares with what was so before the first attempt. */
export function recoverUngroupTabs(action: UngroupTabs, recovery: Recovery): Promise<UngroupTabs_Result> {
  return ungroup(action, recovery, recovery.note as Before);
}

async function ungroup(action: UngroupTabs, context: Context, known: Before | undefined): Promise<UngroupTabs_Result> {
  const targets = await findTabs(context, action.tabIds);
  const before = known ?? (await beginWith(context, targets));
  const tried = await eachTab(context, targets, async (tab) => {
    if (tab.groupId !== undefined) {
      await context.browser.tabs.ungroup([tab.id]);
    }
    return undefined;
  });
  const { items, tabs } = await readBack(context, targets, tried, ({ groupId }) => groupId === undefined);
  const effects = await effectsOf(context, before, { tabs, asked: ["ungrouped"] });
  return create(UngroupTabs_ResultSchema, { ungroupedCount: countOk(items), items, ...effects });
}
