/** Commands whose caller knows an address as it left the browser. */
import { create } from "@bufbuild/protobuf";
import { SavedTabSchema } from "@throwbar/es/pb/state";
import { expect, test } from "vitest";
import { fittingAddress } from "../src/state/convert.js";
import { FakeBrowser } from "./fake/browser.js";
import { bench, run, short, tabId } from "./fake/context.js";

test("closeTabsByUrl finds a tab by its address as the server lists it, without the password, and as the browser has it", async () => {
  for (const url of ["https://login.test/in", "https://me:secret@login.test/in", "*login.test/*"]) {
    const browser = new FakeBrowser("https://a.test/", "https://me:secret@login.test/in");
    const found = browser.tabList[1]?.id ?? 0;
    const result = await run({ case: "closeTabsByUrl", value: { url } }, bench(browser).context);
    expect([result.closedCount, short(result.items)]).toEqual([1, [`${found} OK`]]);
  }
});

test("an address that was cut is not opened again as if it were whole", async () => {
  const browser = new FakeBrowser("https://a.test/");
  const url = fittingAddress(`https://long.test/${"x".repeat(70_000)}`);
  const rows = [create(SavedTabSchema, { savedId: "s1", tabId: tabId(9), url })];
  const result = await run({ case: "restoreTabs", value: { savedIds: ["s1"] } }, bench(browser, rows).context);
  expect(short(result.items)).toEqual(["s1 REFUSED_URL"]);
  expect(browser.urls()).toEqual(["https://a.test/"]);
});
