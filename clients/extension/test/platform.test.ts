import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { manifestOf } from "../scripts/manifest.mjs";
import { chrome } from "../scripts/targets/chrome.mjs";
import { Backoff } from "../src/link/backoff.js";
import { browserError, call, unlessStopped } from "../src/platform/chrome/errors.js";

test.each([
  ["No tab with id: 17.", "noTab", 17],
  ["No window with id: 4.", "noWindow", 4],
  ["No group with id: 3.", "noGroup", 3],
  ["Tabs cannot be edited right now (user may be dragging a tab).", "busy", undefined],
  ["Tabs can only be moved to and from normal windows.", "unsupportedWindow", undefined],
  ["Grouping is not supported by tabs in this window.", "unsupportedWindow", undefined],
  ["Tabs can only be moved between windows in the same profile.", "unsupportedWindow", undefined],
  ["No current window", "noWindow", undefined],
  ["No last-focused window", "noWindow", undefined],
  [
    "JavaScript URLs are not allowed in API based extension navigations. Use chrome.scripting.executeScript instead.",
    "refusedUrl",
    undefined,
  ],
  ["Cannot navigate to a chrome-untrusted:// page.", "refusedUrl", undefined],
  ["Cannot navigate to a devtools:// page.", "refusedUrl", undefined],
  ["Cannot navigate to a file URL without local file access.", "refusedUrl", undefined],
  ['Cannot open URL "chrome://settings" in an incognito window.', "refusedUrl", undefined],
  ["I'm sorry. I'm afraid I can't do that.", "refusedUrl", undefined],
  ['Invalid url: "http://".', "refusedUrl", undefined],
  ["Navigation rejected.", "refusedUrl", undefined],
  [
    "URLs with the 'isolated-app:' scheme cannot be opened with tabs.create. Use windows.create instead.",
    "refusedUrl",
    undefined,
  ],
  [
    "Tab operation is invalid as the specified input would disrupt group continuity in the tab strip.",
    "splitsGroup",
    undefined,
  ],
  ["Cannot discard tab with id: 5.", "other", undefined],
  ["Something new", "other", undefined],
])("%s", (text, kind, missingId) => {
  expect(browserError(new Error(text))).toMatchObject({ kind, message: text, missingId });
});

test("waits grow to half a minute and are spread all over", () => {
  const most = new Backoff(() => 1);
  expect(Array.from({ length: 8 }, () => most.next())).toEqual([
    1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000,
  ]);
  most.reset();
  expect(most.next()).toBe(1000);
  const least = new Backoff(() => 0);
  expect([least.next(), least.next(), least.next(5000)]).toEqual([500, 500, 5500]);
});

test("the manifest's key gives the id that the end-to-end tests know", () => {
  const { key } = manifestOf(chrome);
  const hash = createHash("sha256")
    .update(Buffer.from(String(key), "base64"))
    .digest("hex");
  const id = [...hash.slice(0, 32)].map((digit) => String.fromCharCode(97 + Number.parseInt(digit, 16))).join("");
  expect(id).toBe("illbokgpaofbmakbheaeacknengkefnn");
});

test("a worker that is being stopped is told nothing of a call, so that the next one finds out what came of it", async () => {
  const stopped = () => Promise.reject(new Error("No SW"));
  let settled = 0;
  for (const wait of [call(stopped), unlessStopped(stopped)]) {
    wait.finally(() => settled++).catch(() => {});
  }
  await new Promise((resolve) => setImmediate(resolve));
  expect(settled).toBe(0);
  await expect(unlessStopped(() => Promise.reject(new Error("QUOTA_BYTES quota exceeded")))).rejects.toThrow(
    "QUOTA_BYTES",
  );
  await expect(call(() => Promise.resolve(7))).resolves.toBe(7);
});
