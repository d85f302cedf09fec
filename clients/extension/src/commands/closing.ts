/** Closing tabs, each at most once, and telling by reading what came of it. */
import { ItemStatus } from "@throwbar/es/pb/state";
import { BrowserError } from "../platform/port.js";
import type { Context } from "./context.js";
import { pause } from "./deadline.js";
import { isNormal } from "./targets.js";

export interface CloseOutcome {
  readonly status: ItemStatus;
  readonly detail: string;
}

/** How long a tab that was asked to close before the worker was stopped may still take. */
const settleMs = 1000;
const lookEveryMs = 100;
/** A wait of this length without a call of the browser's API would be close to the end of the worker's life. */
const awakeEveryMs = 15_000;

/** Closes tabs that exist. It waits for those whose page asks the person until it is time to answer. */
export async function closeOnce(context: Context, ids: readonly number[]): Promise<Map<number, CloseOutcome>> {
  const spare = await keepBrowserOpen(context, ids);
  const closed = new Closed(ids);
  const stop = context.browser.onChange((change) => {
    if (change.kind === "removed") {
      closed.see(change.id);
    }
  });
  const timer = setInterval(() => void context.browser.stayAwake(), awakeEveryMs);
  let refusal: string | undefined;
  try {
    const asked = askToClose(context, ids).then((why) => {
      refusal = why;
    });
    await Promise.race([closed.all, asked, endOf(context.signal)]);
    const open = await openNow(context, ids);
    for (const id of ids.filter((each) => !open.has(each))) {
      closed.see(id);
    }
    if (refusal === undefined) {
      await Promise.race([closed.all, endOf(context.signal)]);
    }
  } finally {
    clearInterval(timer);
    stop();
  }
  const left = await openNow(context, ids);
  return new Map(ids.map((id) => [id, outcome(left.has(id), refusal, spare)]));
}

function outcome(open: boolean, refusal: string | undefined, spare: boolean): CloseOutcome {
  if (!open) {
    return { status: ItemStatus.OK, detail: spare ? "an empty tab was opened so that the browser stays open" : "" };
  }
  if (refusal !== undefined) {
    return { status: ItemStatus.BUSY, detail: refusal };
  }
  return { status: ItemStatus.BLOCKED_BY_PAGE, detail: "the page asks before it is left; the tab is still open" };
}

/** Resolves once all of some tabs were seen to close. */
class Closed {
  readonly #left: Set<number>;
  #done: () => void = () => {};
  readonly all: Promise<void>;

  constructor(ids: readonly number[]) {
    this.#left = new Set(ids);
    this.all = new Promise((resolve) => {
      this.#done = resolve;
    });
  }

  see(id: number): void {
    this.#left.delete(id);
    if (this.#left.size === 0) {
      this.#done();
    }
  }
}

function endOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
    }
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/**
 * One call for all, which is twice as fast as one for each. The browser stops at the first tab that it does not know: those
 * before it were asked, those after it were not and are asked next. Undefined unless the browser refused.
 */
async function askToClose(context: Context, ids: readonly number[]): Promise<string | undefined> {
  let next = ids;
  while (next.length > 0) {
    try {
      await context.browser.tabs.remove(next);
      return undefined;
    } catch (error) {
      const at = error instanceof BrowserError && error.kind === "noTab" ? next.indexOf(error.missingId ?? -1) : -1;
      if (at < 0) {
        // Which of them were asked is not known, so none is asked again.
        return error instanceof Error ? error.message : String(error);
      }
      next = next.slice(at + 1);
    }
  }
  return undefined;
}

async function openNow(context: Context, ids: readonly number[]): Promise<Set<number>> {
  const wanted = new Set(ids);
  return new Set((await context.browser.tabs.list()).map(({ id }) => id).filter((id) => wanted.has(id)));
}

/** The tabs of a list that are open, once those that are closing have had the time for it. */
export async function stillOpen(context: Context, ids: readonly number[]): Promise<Set<number>> {
  let open = await openNow(context, ids);
  for (let waited = 0; open.size > 0 && waited < settleMs && !context.signal.aborted; waited += lookEveryMs) {
    await pause(lookEveryMs, context.signal);
    open = await openNow(context, ids);
  }
  return open;
}

/**
 * With its last window the browser ends, and with it the device and the answer. So a command that would close every tab leaves
 * one empty tab.
 */
async function keepBrowserOpen(context: Context, ids: readonly number[]): Promise<boolean> {
  const { tabs, windows } = context.browser;
  const closing = new Set(ids);
  const normal = new Set((await windows.list()).filter(isNormal).map(({ id }) => id));
  const open = (await tabs.list()).filter(({ windowId }) => normal.has(windowId));
  const last = open.at(-1);
  if (last === undefined || open.some(({ id }) => !closing.has(id))) {
    return false;
  }
  await tabs.create({ windowId: last.windowId, active: false });
  return true;
}
