/** activateTab, reloadTabs, pinTabs, muteTabs and getActiveTab. */
import { create } from "@bufbuild/protobuf";
import { CommandFailure } from "@throwbar/es/errors";
import { ErrorCode } from "@throwbar/es/pb/command";
import { ItemStatus } from "@throwbar/es/pb/state";
import {
  type ActivateTab,
  type ActivateTab_Result,
  ActivateTab_ResultSchema,
  type GetActiveTab,
  type GetActiveTab_Result,
  GetActiveTab_ResultSchema,
  type MuteTabs,
  type MuteTabs_Result,
  MuteTabs_ResultSchema,
  type PinTabs,
  type PinTabs_Result,
  PinTabs_ResultSchema,
  type ReloadTabs,
  type ReloadTabs_Result,
  ReloadTabs_ResultSchema,
} from "@throwbar/es/pb/tabs";
import type { TabInfo } from "../platform/port.js";
import { address } from "../state/convert.js";
import { compositeId } from "../state/identity.js";
import type { Context, Recovery } from "./context.js";
import { pause } from "./deadline.js";
import { type Before, beginWith, effectsOf, readBefore } from "./effects.js";
import { countOk, notFound } from "./items.js";
import { asking, land, maybeAsking } from "./landing.js";
import {
  eachOnce,
  eachTab,
  findTab,
  findTabs,
  isNormal,
  readBack,
  singleFailure,
  type Target,
  whenFree,
} from "./targets.js";

/** How long the system may take to give a window the focus. */
const focusMs = 1000;
const lookEveryMs = 25;

export async function activateTab(action: ActivateTab, context: Context): Promise<ActivateTab_Result> {
  const tab = await findTab(context, action.tabId);
  const { tabs, windows } = context.browser;
  const before = await readBefore(context, []);
  try {
    await whenFree(context, () => tabs.update(tab.id, { active: true }));
    if (action.focusWindow === true) {
      await whenFree(context, () => windows.focus(tab.windowId));
    }
  } catch (error) {
    throw singleFailure(error);
  }
  if (action.focusWindow === true && !(await hasFocus(context, tab.windowId))) {
    throw new CommandFailure(
      ErrorCode.FAILED,
      "the tab is in front of its window, but the system did not give that window the focus; the person has to choose it",
    );
  }
  const now = await tabs.get(context.current(tab.id));
  if (now === undefined) {
    throw new CommandFailure(ErrorCode.NOT_FOUND, `the tab ${action.tabId} closed meanwhile`);
  }
  // Only a window that was asked to take the focus can have it from this command.
  const mayFocus = action.focusWindow === true ? [tab.windowId] : [];
  const effects = await effectsOf(context, before, { tabs: [], mayFocus });
  return create(ActivateTab_ResultSchema, { activated: now.active, ...effects });
}

/** The system gives the focus when it likes, so the browser is asked for a while. */
async function hasFocus(context: Context, id: number): Promise<boolean> {
  for (let waited = 0; ; waited += lookEveryMs) {
    const window = (await context.browser.windows.list()).find((each) => each.id === id);
    if (window === undefined) {
      throw new CommandFailure(ErrorCode.NOT_FOUND, "the tab's window closed meanwhile");
    }
    if (window.focused || waited >= focusMs || context.signal.aborted) {
      return window.focused;
    }
    await pause(lookEveryMs, context.signal);
  }
}

export async function reloadTabs(action: ReloadTabs, context: Context): Promise<ReloadTabs_Result> {
  const targets = await findTabs(context, action.tabIds);
  await context.begin(null);
  const items = await eachOnce(targets, (tab) => reload(context, tab, action.bypassCache ?? false));
  return create(ReloadTabs_ResultSchema, { reloadedCount: countOk(items), items });
}

async function reload(context: Context, tab: TabInfo, bypassCache: boolean) {
  const load = () => context.browser.tabs.reload(tab.id, bypassCache);
  const landing = await land(context, tab, () => whenFree(context, load));
  switch (landing) {
    case "begun":
      return tab.discarded ? { status: ItemStatus.OK, detail: "it was asleep, and is awake now" } : undefined;
    case "gone":
      return { status: ItemStatus.NOT_FOUND, detail: "" };
    case "asks":
      return { status: ItemStatus.BLOCKED_BY_PAGE, detail: `${asking}; it is in front of its window now` };
    case "stayed":
      return {
        status: ItemStatus.UNSPECIFIED,
        detail: "it was not loaded again: the person, or its server, kept the page",
      };
    case "unknown":
      return { status: ItemStatus.UNKNOWN_OUTCOME, detail: `nothing was loaded yet: ${maybeAsking}` };
  }
}

export function pinTabs(action: PinTabs, context: Context): Promise<PinTabs_Result> {
  return pin(action, context, undefined);
}

/** Pins those that are not yet, unless it is too late, and compares with what was so before the first attempt. */
export function recoverPinTabs(action: PinTabs, recovery: Recovery): Promise<PinTabs_Result> {
  return pin(action, recovery, recovery.note as Before);
}

async function pin(action: PinTabs, context: Context, known: Before | undefined): Promise<PinTabs_Result> {
  const pinned = action.pinned ?? false;
  const [targets, windows] = await Promise.all([findTabs(context, action.tabIds), context.browser.windows.list()]);
  const normal = new Set(windows.filter(isNormal).map(({ id }) => id));
  const before = known ?? (await beginWith(context, targets));
  const tried = await eachTab(context, pinned ? targets : fromTheRight(targets), async (tab) => {
    if (!normal.has(tab.windowId)) {
      return { status: ItemStatus.UNSUPPORTED_WINDOW, detail: "only tabs of normal windows can be pinned" };
    }
    if (tab.pinned !== pinned) {
      await context.browser.tabs.update(tab.id, { pinned });
    }
    return undefined;
  });
  const byId = new Map(tried.map((each) => [each.id, each]));
  const { items, tabs } = await readBack(
    context,
    targets,
    targets.map(({ id }) => byId.get(id) ?? notFound(id)),
    (tab) => tab.pinned === pinned,
  );
  const effects = await effectsOf(context, before, { tabs, asked: pinned ? [] : ["unpinned"] });
  return create(PinTabs_ResultSchema, { pinnedCount: countOk(items), items, ...effects });
}

/** The browser puts each tab that is unpinned in front of those that are not pinned: so they keep their order. */
function fromTheRight(targets: readonly Target[]): Target[] {
  return [...targets].sort((a, b) => (b.tab?.index ?? 0) - (a.tab?.index ?? 0));
}

/** Changes nothing but whether the tabs are heard: a tab that plays goes on playing, and one that is asleep stays so. */
export async function muteTabs(action: MuteTabs, context: Context): Promise<MuteTabs_Result> {
  const muted = action.muted ?? false;
  const targets = await findTabs(context, action.tabIds);
  const tried = await eachTab(context, targets, async (tab) => {
    if (tab.muted !== muted) {
      await context.browser.tabs.update(tab.id, { muted });
    }
    return undefined;
  });
  const { items } = await readBack(context, targets, tried, (tab) => tab.muted === muted);
  return create(MuteTabs_ResultSchema, { mutedCount: countOk(items), items });
}

/** The tab in front of the window that has the focus, or had it last. */
export async function getActiveTab(_action: GetActiveTab, context: Context): Promise<GetActiveTab_Result> {
  const windowId = await context.browser.windows.lastFocused();
  const tabs = windowId === undefined ? [] : await context.browser.tabs.list(windowId);
  const tab = tabs.find(({ active }) => active);
  if (tab === undefined) {
    return create(GetActiveTab_ResultSchema, {});
  }
  const tabId = compositeId(context.identity, "tab", tab.id);
  return create(GetActiveTab_ResultSchema, { tabId, url: address(tab), title: tab.title });
}
