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

/** How often it has to look as if nothing came of it. The browser's own page for a server that is not there takes longer to come. */
const looks = 3;
const looksWhileLoading = 15;

/** Tells a tab to load something, and what came of it. */
export async function land(context: Context, tab: TabInfo, load: () => Promise<unknown>): Promise<Landing> {
  const signs = new Signs(context, tab.id);
  try {
    await load();
    let quiet = 0;
    for (let waited = 0; ; waited += lookEveryMs) {
      const now = await context.browser.tabs.get(context.current(tab.id));
      if (now === undefined) {
        return "gone";
      }
      if (signs.loading || (now.url !== tab.url && now.url !== "")) {
        return "begun";
      }
      // An event may come later than what it tells of, so one look is not enough.
      quiet = now.pendingUrl === "" ? quiet + 1 : 0;
      if (quiet >= (now.loading ? looksWhileLoading : looks)) {
        return "stayed";
      }
      if (waited >= waitMs || context.signal.aborted) {
        // The browser brings a page that asks to the front.
        return now.active && !tab.active ? "asks" : "unknown";
      }
      await signs.next(context.signal);
    }
  } finally {
    signs.end();
  }
}

/** What the browser tells of a tab. */
class Signs {
  /** Whether its server has answered. */
  loading = false;
  readonly end: () => void;
  #wake = () => {};

  constructor({ browser }: Context, id: number) {
    this.end = browser.onChange((change) => {
      if ((change.kind === "tab" || change.kind === "removed") && change.id === id) {
        this.loading ||= change.kind === "tab" && change.loading;
        this.#wake();
      }
    });
  }

  /** Resolves when the browser tells something, or after a while. */
  async next(signal: AbortSignal): Promise<void> {
    const told = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await Promise.race([told, pause(lookEveryMs, signal)]);
  }
}
