import { expect, test } from "vitest";
import { agentName } from "../src/platform/chrome/about.js";

const madeUp = { brand: "Not/A)Brand", version: "8" };
const chromium = { brand: "Chromium", version: "156" };
const chrome = { brand: "Google Chrome", version: "156" };
const likeChrome =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";

test.each([
  ["Chromium 156", [madeUp, chromium], likeChrome],
  ["Google Chrome 156", [chromium, madeUp, chrome], likeChrome],
  [
    "Microsoft Edge 156",
    [{ brand: "Microsoft Edge", version: "156" }, madeUp, chromium],
    `${likeChrome} Edg/156.0.0.0`,
  ],
  ["Opera 140", [{ brand: "Not;A=Brand", version: "99" }, { brand: "Opera", version: "140" }, chromium], likeChrome],
  ["Opera 140", [madeUp, chromium, chrome], `${likeChrome} OPR/140.0.0.0`],
  ["Brave 156", [{ brand: "Brave", version: "156" }, chromium, madeUp], likeChrome],
  ["Vivaldi 8", [{ brand: "Vivaldi", version: "8" }, chrome, chromium], likeChrome],
  ["Vivaldi 8", [madeUp, chromium], `${likeChrome} Vivaldi/8.1`],
  ["YaBrowser 26", [chrome, { brand: "YaBrowser", version: "26" }, chromium], likeChrome],
  ["Firefox 145", undefined, "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"],
  ["Chromium", undefined, "something else"],
])("%s", (name, brands, userAgent) => {
  expect(agentName({ userAgent, ...(brands === undefined ? {} : { userAgentData: { brands } }) })).toBe(name);
});

test("Brave that hides in the list is known by its own mark", () => {
  expect(agentName({ userAgent: likeChrome, userAgentData: { brands: [madeUp, chrome] }, brave: {} })).toBe(
    "Brave 156",
  );
});
