import { BrowserError, type BrowserErrorKind } from "../port.js";

const forms: readonly (readonly [RegExp, BrowserErrorKind])[] = [
  [/no tab with id: ?(\d+)/i, "noTab"],
  [/no window with id: ?(\d+)/i, "noWindow"],
  [/no group with id: ?(\d+)/i, "noGroup"],
  [/no current window|no last-focused window/i, "noWindow"],
  [/cannot be (?:edited|modified) right now/i, "busy"],
  // The last one: between normal and private windows.
  [/normal windows|by tabs in this window|same profile/i, "unsupportedWindow"],
  // The last one is its answer to addresses that would end it.
  [
    /invalid url:|urls are not allowed|cannot (?:navigate|open|be opened)|navigation rejected|i'm afraid/i,
    "refusedUrl",
  ],
  [/group continuity/i, "splitsGroup"],
];

/** Reads what the browser says in words. */
export function browserError(error: unknown): BrowserError {
  const text = error instanceof Error ? error.message : String(error);
  for (const [form, kind] of forms) {
    const found = form.exec(text);
    if (found !== null) {
      return new BrowserError(kind, text, found[1] === undefined ? undefined : Number(found[1]));
    }
  }
  return new BrowserError("other", text);
}

/**
 * Runs a call that a worker makes. One that is being stopped is told "No SW", which says nothing of what came of the call: it
 * gets no answer then, and the next worker finds that out.
 */
export async function unlessStopped<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Error && error.message === "No SW") {
      return new Promise<never>(() => {});
    }
    throw error;
  }
}

/** Runs a call of the browser's API and turns what it throws into a BrowserError. */
export async function call<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await unlessStopped(run);
  } catch (error) {
    throw browserError(error);
  }
}
