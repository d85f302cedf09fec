/** moveTabs. */
import { create } from "@bufbuild/protobuf";
import { CommandFailure } from "@throwbar/es/errors";
import { ErrorCode } from "@throwbar/es/pb/command";
import { type ItemOutcome, ItemStatus } from "@throwbar/es/pb/state";
import { type MoveTabs, type MoveTabs_Result, MoveTabs_ResultSchema } from "@throwbar/es/pb/tabs";
import { BrowserError, type TabInfo, type WindowInfo } from "../platform/port.js";
import type { Context, Recovery } from "./context.js";
import { type Before, beginWith, effectsOf, unfolds } from "./effects.js";
import { countOk, failedItem, item, notFound, otherPrivacy, unchanged } from "./items.js";
import {
  type FoundTarget,
  findTabs,
  findWindow,
  isFound,
  isNormal,
  type Target,
  tabsById,
  whenFree,
} from "./targets.js";

/** As the browser writes it. */
const atEnd = -1;

interface Place {
  /** The window that was named. */
  readonly window: WindowInfo | undefined;
  readonly index: number | undefined;
}

async function placeOf(action: MoveTabs, context: Context): Promise<Place> {
  const window = action.windowId === undefined ? undefined : await findWindow(context, action.windowId);
  if (window !== undefined && !isNormal(window)) {
    throw new CommandFailure(ErrorCode.FAILED, `tabs cannot be moved into a ${window.kind} window`);
  }
  return { window, index: action.index };
}

/** The tabs that go to each window, in the order wanted. */
function byWindow(found: readonly FoundTarget[], place: Place): Map<number, FoundTarget[]> {
  const out = new Map<number, FoundTarget[]>();
  for (const target of found) {
    const windowId = place.window?.id ?? target.tab.windowId;
    out.set(windowId, [...(out.get(windowId) ?? []), target]);
  }
  return out;
}

export async function moveTabs(action: MoveTabs, context: Context): Promise<MoveTabs_Result> {
  const place = await placeOf(action, context);
  const targets = await findTabs(context, action.tabIds);
  const before = await beginWith(context, targets);
  const moves = byWindow(targets.filter(isFound), place);
  const tried = new Map<string, ItemOutcome>();
  for (const [windowId, group] of moves) {
    for (const outcome of await moveInto(context, windowId, place, group)) {
      tried.set(outcome.id, outcome);
    }
  }
  return moved(context, { place, targets, moves, tried, before });
}

/** One after the other: each move shifts the places of the others, which is kept account of rather than read again. */
async function moveInto(
  context: Context,
  windowId: number,
  { window, index }: Place,
  group: readonly FoundTarget[],
): Promise<ItemOutcome[]> {
  const order = new Order(index === undefined ? [] : await context.browser.tabs.list(windowId), group, index);
  const items: ItemOutcome[] = [];
  for (const { id, tab } of group) {
    if (window !== undefined && window.private !== tab.private) {
      items.push(item(id, ItemStatus.UNSUPPORTED_WINDOW, otherPrivacy));
      continue;
    }
    try {
      const to = index === undefined ? atEnd : order.placeFor(tab.id);
      const { index: at } = await move(context, tab, windowId, to);
      order.moved(tab.id, at);
      items.push(item(id, ItemStatus.OK));
    } catch (error) {
      items.push(failedItem(id, error));
    }
  }
  return items;
}

/** The tabs of a window while some of them, or some of other windows, are put side by side. */
class Order {
  #ids: number[];
  /** The tab that comes right behind them; undefined if none does. */
  readonly #behind: number | undefined;
  #last: number | undefined;

  constructor(tabs: readonly TabInfo[], group: readonly FoundTarget[], index = 0) {
    this.#ids = [...tabs].sort((a, b) => a.index - b.index).map(({ id }) => id);
    const own = new Set(group.map(({ tab }) => tab.id));
    this.#behind = this.#ids.filter((id) => !own.has(id))[index];
  }

  /** Where the next one goes: behind the one before it. */
  placeFor(id: number): number {
    const others = this.#ids.filter((each) => each !== id);
    const next = this.#last === undefined ? -1 : others.indexOf(this.#last) + 1;
    const behind = this.#behind === undefined ? -1 : others.indexOf(this.#behind);
    const place = next > 0 ? next : behind;
    return place === others.length ? atEnd : place;
  }

  moved(id: number, at: number): void {
    this.#ids = this.#ids.filter((each) => each !== id);
    this.#ids.splice(at, 0, id);
    this.#last = id;
  }
}

async function move(context: Context, { id }: TabInfo, windowId: number, index: number): Promise<TabInfo> {
  const to = (place: number) => whenFree(context, () => context.browser.tabs.move(id, { windowId, index: place }));
  try {
    return await to(index);
  } catch (error) {
    if (!(error instanceof BrowserError && error.kind === "splitsGroup")) {
      throw error;
    }
    // From another window the browser lets none in between the tabs of a group, and from its own it does.
    await to(atEnd);
    return to(index);
  }
}

interface Moved {
  readonly place: Place;
  readonly targets: readonly Target[];
  readonly moves: ReadonlyMap<number, readonly FoundTarget[]>;
  readonly tried: ReadonlyMap<string, ItemOutcome>;
  readonly before: Before | undefined;
}

/** Counts what is in the window now. */
async function moved(context: Context, { place, targets, moves, tried, before }: Moved): Promise<MoveTabs_Result> {
  const ids = targets.filter(isFound).map(({ tab }) => context.current(tab.id));
  const now = await tabsById(context, ids);
  const done: number[] = [];
  const outcomes = new Map<string, ItemOutcome>();
  for (const [windowId, group] of moves) {
    for (const [at, { id, tab, newId }] of group.entries()) {
      const is = now.get(context.current(tab.id));
      const was = tried.get(id);
      const came = is?.windowId === windowId && (was?.status === ItemStatus.OK || tab.windowId !== windowId);
      if (is === undefined || !came) {
        outcomes.set(id, is === undefined ? notFound(id) : failedMove(id, was, newId));
        continue;
      }
      done.push(tab.id);
      const wanted = place.index === undefined ? undefined : place.index + at;
      outcomes.set(id, item(id, ItemStatus.OK, detailOf(tab, is, wanted), newId));
    }
  }
  const items = targets.map(({ id }) => outcomes.get(id) ?? notFound(id));
  const effects = await effectsOf(context, before, {
    tabs: done,
    asked: ["moved"],
    mayFocus: unfolds(place.window),
  });
  return create(MoveTabs_ResultSchema, { movedCount: countOk(items), items, ...effects });
}

const failedMove = (id: string, was: ItemOutcome | undefined, newId: string): ItemOutcome =>
  was === undefined || was.status === ItemStatus.OK ? unchanged(id, newId) : was;

/** Without a place it is the end, which for a pinned tab is behind the other pinned ones. */
function detailOf(was: TabInfo, is: TabInfo, wanted: number | undefined): string {
  const there = wanted === undefined ? !is.pinned : is.index === wanted;
  const details = [
    ...(there ? [] : [`the browser put it at position ${is.index}`]),
    ...(is.groupId === undefined || is.groupId === was.groupId ? [] : ["it joined the group that it stands in"]),
  ];
  return details.join("; ");
}

/** If the tabs stand where they were asked to, side by side, that was it. */
export async function recoverMoveTabs(action: MoveTabs, recovery: Recovery): Promise<MoveTabs_Result> {
  const place = await placeOf(action, recovery);
  const targets = await findTabs(recovery, action.tabIds);
  const moves = byWindow(targets.filter(isFound), place);
  const tried = new Map<string, ItemOutcome>();
  for (const [windowId, group] of moves) {
    const count = (await recovery.browser.tabs.list(windowId)).length;
    const first = place.index ?? count - group.length;
    if (!group.every(({ tab }, at) => tab.windowId === windowId && tab.index === first + at)) {
      throw new CommandFailure(ErrorCode.INTERRUPTED, "the browser stopped the extension while the tabs were moved");
    }
    for (const { id } of group) {
      tried.set(id, item(id, ItemStatus.OK));
    }
  }
  const before = (recovery.note ?? undefined) as Before | undefined;
  return moved(recovery, { place, targets, moves, tried, before });
}
