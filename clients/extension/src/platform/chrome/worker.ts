/** What only the worker does: wake up, see to the document that holds the link, and read the browser. */
import type { Badge, BrowserPort } from "../port.js";
import { listen } from "./events.js";
import { seesPrivate } from "./incognito.js";
import { chromeGroups, chromeTabs, chromeWindows } from "./tabs.js";

const linkDocument = "offscreen.html";
const wakeAlarm = "wake";
const wakeMinutes = 0.5;

/** Has to be called while the worker starts: it registers listeners. */
export function chromeBrowser(): BrowserPort {
  return {
    tabs: chromeTabs,
    windows: chromeWindows,
    groups: chromeGroups,
    onChange: listen(),
    stayAwake: async () => {
      await chrome.runtime.getPlatformInfo();
    },
    seesPrivate,
  };
}

/** Calls back whenever the browser wakes the worker for no other reason: start, installation, and every half minute. */
export function onWake(listener: () => void): void {
  chrome.runtime.onStartup.addListener(listener);
  chrome.runtime.onInstalled.addListener(listener);
  chrome.alarms.onAlarm.addListener(listener);
}

/** Alarms do not survive every restart of the browser, so each start of the worker makes sure of this one. */
export async function setAlarm(): Promise<void> {
  if ((await chrome.alarms.get(wakeAlarm)) === undefined) {
    await chrome.alarms.create(wakeAlarm, { periodInMinutes: wakeMinutes });
  }
}

let opening: Promise<void> | undefined;

/** Makes sure of the document that holds the link. Two at once are an error, so everybody waits for the same one. */
export function ensureLinkDocument(): Promise<void> {
  opening ??= openLinkDocument().finally(() => {
    opening = undefined;
  });
  return opening;
}

async function openLinkDocument(): Promise<void> {
  const found = await chrome.runtime.getContexts({ contextTypes: [chrome.runtime.ContextType.OFFSCREEN_DOCUMENT] });
  if (found.length > 0) {
    return;
  }
  try {
    await chrome.offscreen.createDocument({
      url: linkDocument,
      // Only documents that are there to play sound are closed by the browser while nothing happens.
      reasons: [chrome.offscreen.Reason.WORKERS],
      justification: "Holds the connection to the server, which would end each time the browser stops the worker.",
    });
  } catch (error) {
    // A worker that was stopped meanwhile had begun the same: the browser makes one and refuses the second.
    if (!/single offscreen/i.test(String(error))) {
      throw error;
    }
  }
}

/** What is shown last stays until the browser ends, whatever happens to the worker. */
export async function showBadge({ text, colour, title }: Badge): Promise<void> {
  await Promise.all([
    chrome.action.setBadgeText({ text }),
    chrome.action.setBadgeBackgroundColor({ color: colour }),
    chrome.action.setTitle({ title }),
  ]);
}

export async function openPanelByIcon(): Promise<void> {
  await chrome.sidePanel.setPanelBehavior({ openPanelOnActionClick: true });
}
