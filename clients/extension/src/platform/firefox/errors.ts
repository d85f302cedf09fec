import { browserError as inChromiumsWords } from "../chrome/errors.js";
import { BrowserError, type BrowserErrorKind } from "../port.js";

export { unlessStopped } from "../chrome/errors.js";

/** Where Firefox has words of its own. */
const forms: readonly (readonly [RegExp, BrowserErrorKind])[] = [
  [/^invalid tab id: ?(\d+)/i, "noTab"],
  [/^invalid window id: ?(\d+)/i, "noWindow"],
  [/^illegal url: /i, "refusedUrl"],
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
  return inChromiumsWords(error);
}

/** Runs a call of the browser's API and turns what it throws into a BrowserError. */
export async function call<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw browserError(error);
  }
}
