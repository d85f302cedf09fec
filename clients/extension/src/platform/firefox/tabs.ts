import { chromeTabs as common, chromeGroups as commonGroups } from "../chrome/tabs.js";
import { BrowserError, type GroupsPort, type TabsPort } from "../port.js";

export { chromeWindows, tabInfo } from "../chrome/tabs.js";

/** Tab groups came to Firefox with 139; browsers made from it have them later or not at all, Firefox for Android among them. */
const hasGroups = chrome.tabGroups !== undefined && chrome.tabs.group !== undefined;

const none = () => Promise.reject(new BrowserError("other", "This browser has no tab groups."));

/**
 * Firefox closes none of the tabs if one is not known, where others close those before it. So these are asked to close one by
 * one; what is not known among them is as good as closed, and whether they close is to be seen, as ever.
 */
async function remove(ids: readonly number[]): Promise<void> {
  try {
    await common.remove(ids);
  } catch (error) {
    const at = error instanceof BrowserError && error.kind === "noTab" ? ids.indexOf(error.missingId ?? -1) : -1;
    for (const id of ids.slice(0, Math.max(0, at))) {
      void common.remove([id]).catch(() => undefined);
    }
    throw error;
  }
}

const closing: TabsPort = { ...common, remove };

export const chromeTabs: TabsPort = hasGroups ? closing : { ...closing, group: none, ungroup: none };

export const chromeGroups: GroupsPort = hasGroups
  ? commonGroups
  : { missing: true, list: () => Promise.resolve([]), update: none };
