/** activateTab, reloadTabs, pinTabs, muteTabs and getActiveTab. */
import { create } from "@bufbuild/protobuf";
import { type ItemOutcome, ItemStatus } from "@throwbar/es/pb/state";
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
import type { Context } from "./context.js";
import { inTime, pause } from "./deadline.js";
import { countOk } from "./items.js";
import { eachTab, findTab, findTabs, isNormal, singleFailure, whenFree } from "./targets.js";

/** How long to wait for a sign that a tab is loaded again. */
const loadingMs = 10_000;

export async function activateTab(action: ActivateTab, context: Context): Promise<ActivateTab_Result> {
  const tab = await findTab(context, action.tabId);
  const { tabs, windows } = context.browser;
  try {
    await whenFree(context, () => tabs.update(tab.id, { active: true }));
    if (action.focusWindow === true) {
      await inTime(windows.focus(tab.windowId), context.signal);
    }
  } catch (error) {
    throw singleFailure(error);
  }
  const now = await tabs.get(tab.id);
  return create(ActivateTab_ResultSchema, { activated: now?.active ?? false });
}

export async function reloadTabs(action: ReloadTabs, context: Context): Promise<ReloadTabs_Result> {
  const targets = await findTabs(context, action.tabIds);
  await context.begin(null);
  const items = await eachTab(context, targets, (tab) => reload(context, tab, action.bypassCache ?? false));
  return create(ReloadTabs_ResultSchema, { reloadedCount: countOk(items), items });
}

/**
 * The browser says that it reloads even while the page asks the person whether it may. The first answer of the page's server is
 * the only sign that it does, and the lack of one does not tell a page that asks from a server that is slow.
 */
async function reload(context: Context, tab: TabInfo, bypassCache: boolean) {
  let stop = () => {};
  const loading = new Promise<boolean>((resolve) => {
    stop = context.browser.onChange((change) => {
      if (change.kind === "tab" && change.id === tab.id && change.loading) {
        resolve(true);
      }
    });
  });
  try {
    await context.browser.tabs.reload(tab.id, bypassCache);
    const begun = await Promise.race([loading, pause(loadingMs, context.signal).then(() => false)]);
    const detail = "nothing was loaded yet: the page may be asking the person first, or its server is slow";
    return begun ? undefined : { status: ItemStatus.UNKNOWN_OUTCOME, detail };
  } finally {
    stop();
  }
}

export async function pinTabs(action: PinTabs, context: Context): Promise<PinTabs_Result> {
  const pinned = action.pinned ?? false;
  const windows = await context.browser.windows.list();
  const normal = new Set(windows.filter(isNormal).map(({ id }) => id));
  const items = await setEach(context, action.tabIds, async (tab) => {
    if (!normal.has(tab.windowId)) {
      return { status: ItemStatus.UNSUPPORTED_WINDOW, detail: "only tabs of normal windows can be pinned" };
    }
    const now = tab.pinned === pinned ? tab : await context.browser.tabs.update(tab.id, { pinned });
    return now.pinned === pinned ? undefined : unchanged;
  });
  return create(PinTabs_ResultSchema, { pinnedCount: countOk(items), items });
}

export async function muteTabs(action: MuteTabs, context: Context): Promise<MuteTabs_Result> {
  const muted = action.muted ?? false;
  const items = await setEach(context, action.tabIds, async (tab) => {
    const now = tab.muted === muted ? tab : await context.browser.tabs.update(tab.id, { muted });
    return now.muted === muted ? undefined : unchanged;
  });
  return create(MuteTabs_ResultSchema, { mutedCount: countOk(items), items });
}

const unchanged = { status: ItemStatus.UNSPECIFIED, detail: "the browser left it as it was" };

async function setEach(
  context: Context,
  ids: readonly string[],
  set: (tab: TabInfo) => Promise<Pick<ItemOutcome, "status" | "detail"> | undefined>,
): Promise<ItemOutcome[]> {
  return eachTab(context, await findTabs(context, ids), set);
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
