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
import { BrowserError, type GroupColour, type TabInfo } from "../platform/port.js";
import { groupColour } from "../state/convert.js";
import { compositeId } from "../state/identity.js";
import type { Context, Recovery } from "./context.js";
import { countOk, item, notFound } from "./items.js";
import { eachTab, findTabs, isNormal, singleFailure, type Target, whenFree } from "./targets.js";

/** Why a tab is left out of a group; undefined if it is not. */
function leftOut({ id, tab }: Target, normal: ReadonlySet<number>): ItemOutcome | undefined {
  if (tab === undefined) {
    return notFound(id);
  }
  if (!normal.has(tab.windowId)) {
    return item(id, ItemStatus.UNSUPPORTED_WINDOW, "only tabs of normal windows can be grouped");
  }
  // The browser would unpin it without a word.
  return tab.pinned ? item(id, ItemStatus.UNSPECIFIED, "pinned tabs are not grouped; unpin it first") : undefined;
}

async function groupable(context: Context, ids: readonly string[]) {
  const targets = await findTabs(context, ids);
  const normal = new Set((await context.browser.windows.list()).filter(isNormal).map(({ id }) => id));
  const items = new Map(targets.map((target) => [target.id, leftOut(target, normal)]));
  const tabs = targets.flatMap(({ id, tab }) => (tab === undefined || items.get(id) !== undefined ? [] : [tab]));
  return { targets, items, tabs };
}

export async function groupTabs(action: GroupTabs, context: Context): Promise<GroupTabs_Result> {
  const { targets, items, tabs } = await groupable(context, action.tabIds);
  const [first] = tabs;
  if (first === undefined) {
    return create(GroupTabs_ResultSchema, { items: targets.map(({ id }) => items.get(id) ?? notFound(id)) });
  }
  if (tabs.some(({ windowId }) => windowId !== first.windowId)) {
    throw new CommandFailure(
      ErrorCode.INVALID,
      "the tabs are in different windows; move them into one window first, or group those of each window",
    );
  }
  await context.begin(null);
  const groupId = await makeGroup(context, tabs, first.windowId);
  const colour = groupColour(action.colour ?? Colour.UNSPECIFIED);
  const title = action.title;
  if (title !== undefined || colour !== undefined) {
    await named(context, groupId, title, colour);
  }
  return grouped(context, groupId, targets, items);
}

/** The browser groups all or, if one has just been closed, none: then the others are tried once more. */
async function makeGroup(context: Context, tabs: readonly TabInfo[], windowId: number): Promise<number> {
  const ids = tabs.map(({ id }) => id);
  try {
    return await whenFree(context, () => context.browser.tabs.group(ids, { windowId }));
  } catch (error) {
    const rest =
      error instanceof BrowserError && error.kind === "noTab" ? ids.filter((id) => id !== error.missingId) : [];
    if (rest.length === 0 || rest.length === ids.length) {
      throw singleFailure(error);
    }
    try {
      return await whenFree(context, () => context.browser.tabs.group(rest, { windowId }));
    } catch (again) {
      throw singleFailure(again);
    }
  }
}

async function named(
  context: Context,
  groupId: number,
  title: string | undefined,
  colour: GroupColour | undefined,
): Promise<void> {
  const change = { ...(title === undefined ? {} : { title }), ...(colour === undefined ? {} : { colour }) };
  try {
    await whenFree(context, () => context.browser.groups.update(groupId, change));
  } catch (error) {
    if (!(error instanceof BrowserError && error.kind === "noGroup")) {
      throw singleFailure(error);
    }
  }
}

/** Counts what is in the group now, not what was asked for. */
async function grouped(
  context: Context,
  groupId: number,
  targets: readonly Target[],
  before: ReadonlyMap<string, ItemOutcome | undefined>,
): Promise<GroupTabs_Result> {
  const now = new Map((await context.browser.tabs.list()).map((tab) => [tab.id, tab]));
  const items = targets.map(({ id, tab, newId }) => {
    const known = before.get(id);
    if (known !== undefined) {
      return known;
    }
    const is = tab === undefined ? undefined : now.get(tab.id);
    return is?.groupId === groupId ? item(id, ItemStatus.OK, "", newId) : notFound(id);
  });
  const groupedCount = countOk(items);
  const id = groupedCount === 0 ? "" : compositeId(context.identity, "group", groupId);
  return create(GroupTabs_ResultSchema, { groupId: id, groupedCount, items });
}

/** If all of the tabs are in one group that looks as asked, that was it. */
export async function recoverGroupTabs(action: GroupTabs, recovery: Recovery): Promise<GroupTabs_Result> {
  const { targets, items, tabs } = await groupable(recovery, action.tabIds);
  const groupId = tabs[0]?.groupId;
  const group = (await recovery.browser.groups.list()).find(({ id }) => id === groupId);
  const colour = groupColour(action.colour ?? Colour.UNSPECIFIED);
  const asAsked =
    group !== undefined &&
    tabs.every((tab) => tab.groupId === group.id) &&
    (action.title === undefined || action.title === group.title) &&
    (colour === undefined || colour === group.colour);
  if (!asAsked) {
    throw new CommandFailure(ErrorCode.INTERRUPTED, "the browser stopped the extension while the tabs were grouped");
  }
  return grouped(recovery, group.id, targets, items);
}

export async function ungroupTabs(action: UngroupTabs, context: Context): Promise<UngroupTabs_Result> {
  const items = await eachTab(context, await findTabs(context, action.tabIds), async (tab) => {
    if (tab.groupId !== undefined) {
      await context.browser.tabs.ungroup([tab.id]);
    }
    return undefined;
  });
  return create(UngroupTabs_ResultSchema, { ungroupedCount: countOk(items), items });
}
