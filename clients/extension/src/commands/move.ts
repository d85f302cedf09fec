/** moveTabs. */
import { create } from "@bufbuild/protobuf";
import { CommandFailure } from "@throwbar/es/errors";
import { ErrorCode } from "@throwbar/es/pb/command";
import { type ItemOutcome, ItemStatus } from "@throwbar/es/pb/state";
import { type MoveTabs, type MoveTabs_Result, MoveTabs_ResultSchema } from "@throwbar/es/pb/tabs";
import type { TabInfo } from "../platform/port.js";
import type { Context, Recovery } from "./context.js";
import { countOk, failedItem, item, notFound } from "./items.js";
import { type FoundTarget, findTabs, findWindow, isNormal, whenFree } from "./targets.js";

const atEnd = -1;

interface Place {
  readonly windowId: number | undefined;
  readonly index: number | undefined;
}

async function placeOf(action: MoveTabs, context: Context): Promise<Place> {
  const window = action.windowId === undefined ? undefined : await findWindow(context, action.windowId);
  if (window !== undefined && !isNormal(window)) {
    throw new CommandFailure(ErrorCode.FAILED, `tabs cannot be moved into a ${window.kind} window`);
  }
  return { windowId: window?.id, index: action.index };
}

/** The tabs that go to each window, in the order wanted. */
function byWindow(found: readonly FoundTarget[], place: Place): Map<number, FoundTarget[]> {
  const out = new Map<number, FoundTarget[]>();
  for (const target of found) {
    const windowId = place.windowId ?? target.tab.windowId;
    out.set(windowId, [...(out.get(windowId) ?? []), target]);
  }
  return out;
}

export async function moveTabs(action: MoveTabs, context: Context): Promise<MoveTabs_Result> {
  const place = await placeOf(action, context);
  const targets = await findTabs(context, action.tabIds);
  await context.begin(null);
  const found = targets.filter((target): target is FoundTarget => target.tab !== undefined);
  const outcomes = new Map<string, ItemOutcome>();
  for (const [windowId, group] of byWindow(found, place)) {
    for (const outcome of await moveInto(context, windowId, place.index ?? atEnd, group)) {
      outcomes.set(outcome.id, outcome);
    }
  }
  const items = targets.map(({ id }) => outcomes.get(id) ?? notFound(id));
  return create(MoveTabs_ResultSchema, { movedCount: countOk(items), items });
}

/** One after the other: each move shifts the places of the others. */
async function moveInto(
  context: Context,
  windowId: number,
  index: number,
  group: readonly FoundTarget[],
): Promise<ItemOutcome[]> {
  await clearWay(context, windowId, index, group);
  const items: ItemOutcome[] = [];
  let next = index;
  for (const { id, tab, newId } of group) {
    try {
      const moved = await move(context, tab.id, windowId, next);
      const detail = next === atEnd || moved.index === next ? "" : `the browser put it at position ${moved.index}`;
      items.push(item(id, ItemStatus.OK, detail, newId));
      next = next === atEnd ? atEnd : moved.index + 1;
    } catch (error) {
      items.push(failedItem(id, error));
    }
  }
  return items;
}

/**
 * A tab that comes from further left leaves a gap, and what has been placed already slides into it. So where one does, all of
 * them go to the end first, and come from the right.
 */
async function clearWay(
  context: Context,
  windowId: number,
  index: number,
  group: readonly FoundTarget[],
): Promise<void> {
  const own = group.filter(({ tab }) => tab.windowId === windowId);
  if (index === atEnd || !group.some(({ tab }, place) => tab.windowId === windowId && tab.index < index + place)) {
    return;
  }
  for (const { tab } of own) {
    // One that cannot be moved says so when it is its turn.
    await move(context, tab.id, windowId, atEnd).catch(() => undefined);
  }
}

function move(context: Context, id: number, windowId: number, index: number): Promise<TabInfo> {
  return whenFree(context, () => context.browser.tabs.move(id, { windowId, index }));
}

/** If the tabs stand where they were asked to, side by side, that was it. */
export async function recoverMoveTabs(action: MoveTabs, recovery: Recovery): Promise<MoveTabs_Result> {
  const place = await placeOf(action, recovery);
  const targets = await findTabs(recovery, action.tabIds);
  const found = targets.filter((target): target is FoundTarget => target.tab !== undefined);
  const { index } = place;
  const there =
    index !== undefined &&
    [...byWindow(found, place)].every(([windowId, group]) =>
      group.every(({ tab }, position) => tab.windowId === windowId && tab.index === index + position),
    );
  if (!there) {
    throw new CommandFailure(ErrorCode.INTERRUPTED, "the browser stopped the extension while the tabs were moved");
  }
  const items = targets.map(({ id, newId, tab }) =>
    tab === undefined ? notFound(id) : item(id, ItemStatus.OK, "", newId),
  );
  return create(MoveTabs_ResultSchema, { movedCount: countOk(items), items });
}
