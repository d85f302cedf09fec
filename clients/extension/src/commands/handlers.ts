/** Which commands this extension runs, and how each is taken up after the worker was stopped in the middle of it. */
import type { ActionOf, Case, Handlers, ResultOf } from "@throwbar/es/commands";
import { declined } from "@throwbar/es/commands";
import type { BrowserPort } from "../platform/port.js";
import { activateTab, getActiveTab, muteTabs, pinTabs, recoverPinTabs, reloadTabs } from "./change.js";
import { closeTabs, closeTabsByUrl, recoverCloseTabs, recoverCloseTabsByUrl } from "./close.js";
import type { Context, Recovery } from "./context.js";
import { groupTabs, recoverGroupTabs, recoverUngroupTabs, ungroupTabs } from "./group.js";
import { moveTabs, recoverMoveTabs } from "./move.js";
import { navigateTab, openTab, recoverNavigateTab, recoverOpenTab } from "./open.js";
import { recoverRestoreTabs, restoreTabs } from "./restore.js";
import { recoverSaveTabs, saveTabs } from "./saved.js";

export const handlers = {
  openTab,
  closeTabs,
  closeTabsByUrl,
  activateTab,
  navigateTab,
  reloadTabs,
  pinTabs,
  muteTabs,
  groupTabs,
  ungroupTabs,
  moveTabs,
  saveTabs,
  restoreTabs,
  getActiveTab,
  custom: declined,
} as const satisfies Handlers<Context>;

/** Those that this browser has the means for: what it lacks is declined, and not offered. */
export function handlersFor({ groups }: Pick<BrowserPort, "groups">): Handlers<Context> {
  return groups.missing ? { ...handlers, groupTabs: declined, ungroupTabs: declined } : handlers;
}

/**
 * What becomes of a command that had begun its effect. One that had not, and one that may be done twice, is simply run.
 * "interrupted": nothing that can be read tells how far it came.
 */
type Recoveries = {
  readonly [C in Case]: ((action: ActionOf<C>, recovery: Recovery) => Promise<ResultOf<C>>) | "again" | "interrupted";
};

export const recoveries = {
  openTab: recoverOpenTab,
  closeTabs: recoverCloseTabs,
  closeTabsByUrl: recoverCloseTabsByUrl,
  activateTab: "again",
  navigateTab: recoverNavigateTab,
  reloadTabs: "interrupted",
  pinTabs: recoverPinTabs,
  muteTabs: "again",
  groupTabs: recoverGroupTabs,
  ungroupTabs: recoverUngroupTabs,
  moveTabs: recoverMoveTabs,
  saveTabs: recoverSaveTabs,
  restoreTabs: recoverRestoreTabs,
  getActiveTab: "again",
  custom: "interrupted",
} as const satisfies Recoveries;
