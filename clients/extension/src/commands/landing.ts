/**
 * What becomes of a page that a tab was told to load. The browser says yes at once, even while the page that is shown asks the
 * person whether it may be left.
 */
import type { TabInfo } from "../platform/port.js";
import type { Context } from "./context.js";
import { pause } from "./deadline.js";

export type Landing =
  /** Its server has answered: the page that was shown is gone. */
  | "begun"
  /** It is not loading any more, and the page that was shown is still there. */
  | "stayed"
  /** The tab closed. */
  | "gone"
  /** The page that is shown asks the person. */
  | "asks"
  /** Nothing happened for long: a page that asks looks just like a server that is slow. */
  | "unknown";

export const asking = "its page asks the person before it is left, and nobody answered";
export const maybeAsking = "its page may be asking the person first, or its server is slow";

/** How long to wait for a sign, at most. */
const waitMs = 10_000;
/** Not every end has an event of its own. */
const lookEveryMs = 200;

/** Tells a tab to load something, and what came of it. */
export async function land(context: Context, tab: TabInfo, load: () => Promise<unknown>): Promise<Landing> {
  const { browser, signal } = context;
  let signs = 0;
  let wake = () => {};
  const stop = browser.onChange((change) => {
    if (
      (change.kind === "tab" && change.id === tab.id && change.loading) ||
      (change.kind === "removed" && change.id === tab.id)
    ) {
      signs += change.kind === "tab" ? 1 : 0;
      wake();
    }
  });
  try {
    await load();
    for (let waited = 0; ; waited += lookEveryMs) {
      const now = await browser.tabs.get(context.current(tab.id));
      if (now === undefined) {
        return "gone";
      }
      if (signs > 0 || (now.url !== tab.url && now.url !== "")) {
        return "begun";
      }
      const over = waited >= waitMs || signal.aborted;
      if (!now.loading && now.pendingUrl === "" && waited > 0) {
        return "stayed";
      }
      if (over) {
        // The browser brings a page that asks to the front.
        return now.active && !tab.active ? "asks" : "unknown";
      }
      await Promise.race([
        pause(lookEveryMs, signal),
        new Promise<void>((resolve) => {
          wake = resolve;
        }),
      ]);
    }
  } finally {
    stop();
  }
}
