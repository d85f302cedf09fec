/** What Chromium makes of an address that a tab is created with or sent to. */
import { BrowserError } from "../../src/platform/port.js";
import { homeUrl } from "../cases/names.js";

/** Longer addresses are swallowed, without an error where a tab is made for them. */
const maxUrl = 2_097_152;

/** Left to other programs, or to nobody: the tab stays empty. */
const external = /^(ftp|mailto|foo|content|edge):/i;

const refusals: readonly (readonly [RegExp, string])[] = [
  [
    /^javascript:/i,
    "JavaScript URLs are not allowed in API based extension navigations. Use chrome.scripting.executeScript instead.",
  ],
  [/^chrome-untrusted:/i, "Cannot navigate to a chrome-untrusted:// page."],
  [/^devtools:/i, "Cannot navigate to a devtools:// page."],
  [/^chrome:\/\/(kill|crash)/i, "I'm sorry. I'm afraid I can't do that."],
  [
    /^isolated-app:/i,
    "URLs with the 'isolated-app:' scheme cannot be opened with tabs.create. Use windows.create instead.",
  ],
];

export interface Landing {
  /** Where the tab says that it goes to. */
  readonly pending: string;
  /** What it shows in the end; the address before where it is undefined. */
  readonly url: string | undefined;
  readonly tooLong: boolean;
}

/** Throws what the browser refuses. */
export function landing(wanted: string): Landing {
  const text = wanted.trim();
  const refusal = refusals.find(([form]) => form.test(text));
  if (refusal !== undefined) {
    throw new BrowserError("refusedUrl", refusal[1]);
  }
  const url = resolved(text);
  if (url.length > maxUrl) {
    return { pending: "", url: undefined, tooLong: true };
  }
  return { pending: url, url: external.test(url) ? undefined : url, tooLong: false };
}

/** An address without a scheme is taken for one of the extension's own. */
function resolved(text: string): string {
  if (text.startsWith("//")) {
    throw new BrowserError("refusedUrl", `Invalid url: "${text}".`);
  }
  if (/^about:newtab$/i.test(text)) {
    return "chrome://newtab/";
  }
  // A name and digits are taken for a host and a port.
  const host = /^[a-z]+:\d+$/i.test(text) ? `http://${text}` : text;
  try {
    return new URL(host, homeUrl.replace("options.html", "")).href;
  } catch {
    throw new BrowserError("refusedUrl", `Invalid url: "${text}".`);
  }
}
