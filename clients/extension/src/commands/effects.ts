/**
 * What a command changes in the browser beside what it was asked for, told by a reading before it and one after it. A command
 * answers for the tabs that it acted on, and for windows and groups that held nothing else: what a person changes meanwhile is
 * not said to be its doing.
 */
import { create } from "@bufbuild/protobuf";
import { type SideEffects, SideEffectsSchema } from "@throwbar/es/pb/state";
import type { TabInfo, WindowInfo } from "../platform/port.js";
import { compositeId } from "../state/identity.js";
import type { Context } from "./context.js";
import { pause } from "./deadline.js";
import { type Target, tabsById } from "./targets.js";

/** A tab as it was, by the browser's own ids. */
export interface TabBefore {
  readonly id: number;
  readonly windowId: number;
  readonly groupId?: number;
  readonly pinned: boolean;
}

/** What was so before a command. Plain enough to be written into the journal, for who takes the command up later. */
export interface Before {
  /** The tabs that the command is about to act on. */
  readonly tabs: readonly TabBefore[];
  /** Windows and groups in which there is no other tab: only those can the command have emptied. */
  readonly windows: readonly number[];
  readonly groups: readonly number[];
  /** Windows that had the focus: one or, while another program has it, none. */
  readonly focused: readonly number[];
}

/** What a command did. */
export interface Done {
  /** The tabs that it acted on, by the ids that they had before. Others are nobody's doing. */
  readonly tabs: Iterable<number>;
  /** What of it was asked for, and so is no side effect. */
  readonly asked?: readonly ("moved" | "ungrouped" | "unpinned")[];
  /** Empty tabs that it opened so that the browser stays open. */
  readonly openedTabs?: readonly number[];
  readonly openedWindows?: readonly number[];
  /** Windows to which it may have given the focus. A window that it opened is always one of them. */
  readonly mayFocus?: readonly number[];
}

/** The browser unfolds a minimized window, and gives it the focus, when a tab comes to it. */
export const unfolds = (window: WindowInfo | undefined): number[] => (window?.state === "minimized" ? [window.id] : []);

type Reader = Pick<Context, "browser" | "identity" | "current">;

/** How long the browser may take to close a window after its last tab left, and to hand on the focus. */
const settleMs = 500;
const lookEveryMs = 25;
/** From here on one question for all windows is cheaper than one for each. */
const askForAll = 8;

/** Reads what a command that acts on some tabs could change. */
export async function readBefore(context: Reader, tabs: readonly TabInfo[]): Promise<Before> {
  const sources = new Set(tabs.map(({ windowId }) => windowId));
  const { browser } = context;
  const [windows, all] = await Promise.all([
    browser.windows.list(),
    sources.size < askForAll
      ? // A window that closed meanwhile has no tabs any more.
        Promise.all([...sources].map((id) => browser.tabs.list(id).catch((): TabInfo[] => []))).then((each) =>
          each.flat(),
        )
      : browser.tabs.list(),
  ]);
  const own = new Set(tabs.map(({ id }) => id));
  const others = all.filter(({ id }) => !own.has(id));
  const shared = new Set(others.map(({ windowId }) => windowId));
  const sharedGroups = new Set(others.map(({ groupId }) => groupId));
  const groups = new Set(tabs.flatMap(({ groupId }) => (groupId === undefined ? [] : [groupId])));
  return {
    tabs: tabs.map(({ id, windowId, groupId, pinned }) => ({
      id,
      windowId,
      pinned,
      ...(groupId === undefined ? {} : { groupId }),
    })),
    windows: [...sources].filter((id) => !shared.has(id)),
    groups: [...groups].filter((id) => !sharedGroups.has(id)),
    focused: focusedOf(windows),
  };
}

const focusedOf = (windows: readonly WindowInfo[]) => windows.flatMap(({ id, focused }) => (focused ? [id] : []));

/** Reads that, and writes down that the effect begins. */
export async function beginWith(context: Context, targets: readonly Target[]): Promise<Before> {
  const before = await readBefore(
    context,
    targets.flatMap(({ tab }) => tab ?? []),
  );
  await context.begin(before);
  return before;
}

/** The side effects as a part of a result: nothing of it where nothing is known or nothing changed. */
export async function effectsOf(
  context: Reader,
  before: Before | undefined,
  done: Done,
): Promise<{ readonly sideEffects?: SideEffects }> {
  const effects = before === undefined ? undefined : await sideEffects(context, before, done);
  return effects === undefined ? {} : { sideEffects: effects };
}

/** What a command changed beside what was asked; undefined where that is nothing. */
export async function sideEffects(context: Reader, before: Before, done: Done): Promise<SideEffects | undefined> {
  const acted = new Set(done.tabs);
  const tabs = before.tabs.filter(({ id }) => acted.has(id));
  const untouched = before.tabs.filter(({ id }) => !acted.has(id));
  const left = { windows: new Set(untouched.map((tab) => tab.windowId)), groups: new Set(untouched.map(groupOf)) };
  const now = await tabsNow(context, tabs);
  // Who still has a tab that was left alone was closed by somebody else, if at all.
  const emptied = before.windows.filter((id) => !left.windows.has(id));
  const windows = await settled(context, before, emptied, now);
  const open = new Set(windows.map(({ id }) => id));
  const closed = emptied.filter((id) => !open.has(id));
  const removed = await removedGroups(
    context,
    before.groups.filter((id) => !left.groups.has(id)),
  );
  const asked = new Set(done.asked);
  const ids = (kind: "moved" | "ungrouped" | "unpinned", differs: (was: TabBefore, is: TabInfo) => boolean) =>
    asked.has(kind)
      ? []
      : tabs.flatMap((was) => {
          const is = now.get(was.id);
          return is !== undefined && differs(was, is) ? [compositeId(context.identity, "tab", is.id)] : [];
        });
  const focused = focusTaken(before, done, closed, windows);
  const id = (kind: "window" | "group" | "tab") => (native: number) => compositeId(context.identity, kind, native);
  return filled(
    create(SideEffectsSchema, {
      closedWindowIds: closed.map(id("window")),
      openedWindowIds: (done.openedWindows ?? []).map(id("window")),
      removedGroupIds: removed.map(id("group")),
      ungroupedTabIds: ids("ungrouped", (was, is) => was.groupId !== undefined && is.groupId !== was.groupId),
      unpinnedTabIds: ids("unpinned", (was, is) => was.pinned && !is.pinned),
      movedTabIds: ids("moved", (was, is) => was.windowId !== is.windowId),
      openedTabIds: (done.openedTabs ?? []).map(id("tab")),
      ...(focused === undefined ? {} : { focusedWindowId: id("window")(focused) }),
    }),
  );
}

const groupOf = ({ groupId }: TabBefore) => groupId;

/** Side effects that are none are left out. */
function filled(effects: SideEffects): SideEffects | undefined {
  const { $typeName: _, focusedWindowId, ...lists } = effects;
  const some = Object.values(lists).some((list) => Array.isArray(list) && list.length > 0);
  return some || focusedWindowId !== undefined ? effects : undefined;
}

/** The tabs that are still there, by the ids that they had. */
async function tabsNow(context: Reader, before: readonly TabBefore[]): Promise<Map<number, TabInfo>> {
  const ids = before.map(({ id }) => [id, context.current(id)] as const);
  const byId = await tabsById(
    context,
    ids.map(([, id]) => id),
  );
  return new Map(
    ids.flatMap(([was, is]) => {
      const tab = byId.get(is);
      return tab === undefined ? [] : [[was, tab] as const];
    }),
  );
}

/** The windows, once those without a tab have had the time to close, and to hand on the focus. */
async function settled(
  context: Reader,
  before: Before,
  emptied: readonly number[],
  now: ReadonlyMap<number, TabInfo>,
): Promise<WindowInfo[]> {
  const { browser } = context;
  const inUse = new Set([...now.values()].map(({ windowId }) => windowId));
  const closing = emptied.filter((id) => !inUse.has(id));
  const focusMoves = closing.some((id) => before.focused.includes(id));
  for (let waited = 0; ; waited += lookEveryMs) {
    const windows = await browser.windows.list();
    const open = closing.filter((id) => windows.some((window) => window.id === id));
    const moved = !focusMoves || windows.some(({ focused }) => focused);
    if ((open.length === 0 && moved) || waited >= settleMs) {
      return windows;
    }
    const tabs = await Promise.all(open.map((id) => browser.tabs.list(id).catch((): TabInfo[] => [])));
    if (tabs.flat().length > 0) {
      return windows; // a person has put one there
    }
    await pause(lookEveryMs);
  }
}

async function removedGroups(context: Reader, candidates: readonly number[]): Promise<number[]> {
  if (candidates.length === 0) {
    return [];
  }
  const open = new Set((await context.browser.groups.list()).map(({ id }) => id));
  return candidates.filter((id) => !open.has(id));
}

/** The focus that a person moves to some other window is not the command's doing. */
function focusTaken(
  before: Before,
  done: Done,
  closed: readonly number[],
  windows: readonly WindowInfo[],
): number | undefined {
  const taken = focusedOf(windows).filter((id) => !before.focused.includes(id));
  const mayHave = new Set([...(done.mayFocus ?? []), ...(done.openedWindows ?? [])]);
  // With its window the focus goes to another one.
  const inherited = before.focused.some((id) => closed.includes(id));
  return taken.find((id) => mayHave.has(id) || inherited);
}
