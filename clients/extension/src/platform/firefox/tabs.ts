import { chromeTabs as common, chromeGroups as commonGroups } from "../chrome/tabs.js";
import { BrowserError, type GroupsPort, type TabsPort } from "../port.js";

export { chromeWindows, tabInfo } from "../chrome/tabs.js";

/** Tab groups came to Firefox with 139; browsers made from it have them later or not at all, Firefox for Android among them. */
const hasGroups = chrome.tabGroups !== undefined && chrome.tabs.group !== undefined;

const none = () => Promise.reject(new BrowserError("other", "This browser has no tab groups."));

export const chromeTabs: TabsPort = hasGroups ? common : { ...common, group: none, ungroup: none };

export const chromeGroups: GroupsPort = hasGroups
  ? commonGroups
  : { missing: true, list: () => Promise.resolve([]), update: none };
