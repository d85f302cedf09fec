import type { BrowserChange } from "../port.js";

type Listener = (change: BrowserChange) => void;

/**
 * One set of listeners for everything that changes. They are registered when this is called, which has to be while the worker
 * starts: the browser wakes a stopped worker only for events that it listened to then.
 */
export function listen(): (listener: Listener) => () => void {
  const listeners = new Set<Listener>();
  const tell = (change: BrowserChange) => {
    for (const listener of [...listeners]) {
      listener(change);
    }
  };
  listenToTabs(tell);
  chrome.windows.onCreated.addListener(() => tell({ kind: "windows" }));
  chrome.windows.onRemoved.addListener(() => tell({ kind: "windows" }));
  chrome.windows.onFocusChanged.addListener(() => tell({ kind: "windows" }));
  chrome.windows.onBoundsChanged?.addListener(() => tell({ kind: "windows" }));
  // Not every browser has them.
  const groups = chrome.tabGroups as typeof chrome.tabGroups | undefined;
  for (const event of [groups?.onCreated, groups?.onUpdated, groups?.onMoved, groups?.onRemoved]) {
    event?.addListener(() => tell({ kind: "groups" }));
  }
  return (listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
}

function listenToTabs(tell: Listener): void {
  const { tabs } = chrome;
  tabs.onCreated.addListener(({ id, windowId, index }) => {
    if (id !== undefined) {
      tell({ kind: "placed", id, windowId, index });
    }
  });
  tabs.onUpdated.addListener((id, { status, url, title }) =>
    tell({ kind: "tab", id, loading: status === "loading", page: url !== undefined || title !== undefined }),
  );
  tabs.onMoved.addListener((id, { windowId, toIndex }) => tell({ kind: "placed", id, windowId, index: toIndex }));
  tabs.onActivated.addListener(({ tabId, windowId }) => tell({ kind: "shown", id: tabId, windowId }));
  tabs.onAttached.addListener((id, { newWindowId, newPosition }) =>
    tell({ kind: "placed", id, windowId: newWindowId, index: newPosition }),
  );
  tabs.onDetached.addListener((id) => tell({ kind: "left", id }));
  tabs.onReplaced.addListener((by, id) => tell({ kind: "replaced", id, by }));
  tabs.onRemoved.addListener((id) => tell({ kind: "removed", id }));
}
