import {
  BrowserError,
  type GroupsPort,
  type NewTab,
  type TabChange,
  type TabInfo,
  type TabsPort,
  type WindowsPort,
} from "../port.js";
import { call } from "./errors.js";

const noGroup = -1;
/** Left out, apps would be missing, whose tabs are listed. */
const everyKind = ["normal", "popup", "panel", "app", "devtools"] as const;

export function tabInfo(tab: chrome.tabs.Tab): TabInfo {
  return {
    id: tab.id ?? chrome.tabs.TAB_ID_NONE,
    windowId: tab.windowId,
    groupId: tab.groupId === noGroup ? undefined : tab.groupId,
    index: tab.index,
    url: tab.url ?? "",
    pendingUrl: tab.pendingUrl ?? "",
    title: tab.title ?? "",
    active: tab.active,
    pinned: tab.pinned,
    muted: tab.mutedInfo?.muted ?? false,
    audible: tab.audible ?? false,
    discarded: tab.discarded,
    loading: tab.status === "loading",
    private: tab.incognito,
  };
}

/** A tab without an id belongs to developer tools or a kind of window that extensions cannot act on. */
const usable = (tab: chrome.tabs.Tab) => tab.id !== undefined && tab.id !== chrome.tabs.TAB_ID_NONE;

/** Leaves out what is undefined: the browser's API takes undefined for a value of the wrong type. */
function present<T extends object>(values: { readonly [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T;
}

async function getTab(id: number): Promise<TabInfo | undefined> {
  try {
    const tab = await call(() => chrome.tabs.get(id));
    return usable(tab) ? tabInfo(tab) : undefined;
  } catch (error) {
    if (error instanceof BrowserError && error.kind === "noTab") {
      return undefined;
    }
    throw error;
  }
}

async function updateTab(id: number, change: TabChange): Promise<TabInfo> {
  const tab = await call(() => chrome.tabs.update(id, present<chrome.tabs.UpdateProperties>({ ...change })));
  if (tab === undefined) {
    throw new BrowserError("noTab", `No tab with id: ${id}.`, id);
  }
  return tabInfo(tab);
}

/** The API asks for a list that is not empty; callers make sure of it. */
type Ids = [number, ...number[]];

export const chromeTabs: TabsPort = {
  list: async (windowId) => {
    const tabs = await call(() => chrome.tabs.query(windowId === undefined ? {} : { windowId }));
    return tabs.filter(usable).map(tabInfo);
  },
  get: getTab,
  create: async (tab: NewTab) =>
    tabInfo(await call(() => chrome.tabs.create(present<chrome.tabs.CreateProperties>({ ...tab })))),
  update: updateTab,
  remove: (ids) => call(() => chrome.tabs.remove([...ids])),
  move: async (id, to) => tabInfo(await call(() => chrome.tabs.move(id, { ...to }))),
  reload: (id, bypassCache) => call(() => chrome.tabs.reload(id, { bypassCache })),
  group: (ids, into) =>
    call(() =>
      chrome.tabs.group({
        tabIds: [...ids] as Ids,
        ...("groupId" in into ? into : { createProperties: { windowId: into.windowId } }),
      }),
    ),
  ungroup: (ids) => call(() => chrome.tabs.ungroup([...ids] as Ids)),
};

export const chromeWindows: WindowsPort = {
  list: async () => {
    const windows = await call(() => chrome.windows.getAll({ windowTypes: [...everyKind] }));
    return windows.flatMap(({ id, type, focused, state, incognito }) =>
      id === undefined ? [] : [{ id, kind: type ?? "", focused, state: state ?? "", private: incognito }],
    );
  },
  lastFocused: async () => {
    try {
      return (await call(() => chrome.windows.getLastFocused())).id;
    } catch (error) {
      if (error instanceof BrowserError && error.kind === "noWindow") {
        return undefined;
      }
      throw error;
    }
  },
  focus: async (id) => {
    const { state } = await call(() => chrome.windows.get(id));
    const unfold = state === "minimized" ? { state: "normal" as const } : {};
    await call(() => chrome.windows.update(id, { focused: true, ...unfold }));
  },
  create: async (url) => {
    const made = await call(() => chrome.windows.create({ url, focused: false }));
    const tab = made?.tabs?.[0];
    if (tab === undefined) {
      throw new BrowserError("other", "The browser opened no window.");
    }
    return tabInfo(tab);
  },
};

export const chromeGroups: GroupsPort = {
  list: async () => {
    const groups = await call(() => chrome.tabGroups.query({}));
    return groups.map(({ id, windowId, title, color, collapsed }) => ({
      id,
      windowId,
      title: title ?? "",
      colour: color,
      collapsed,
    }));
  },
  update: async (id, { title, colour }) => {
    await call(() => chrome.tabGroups.update(id, present<chrome.tabGroups.UpdateProperties>({ title, color: colour })));
  },
};
