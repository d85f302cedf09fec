import { ErrorCode } from "@throwbar/es/pb/command";
import { ItemStatus } from "@throwbar/es/pb/state";
import { expect, test } from "vitest";
import { describe, learn, nothingKnown } from "../src/panel/activity.js";
import { ago, duration, errorText, spoken, statusText } from "../src/panel/words.js";

const ok = (data: unknown) => JSON.stringify({ ok: true, mark: "m1", data, end: "m1" });
const failed = (error: unknown) => JSON.stringify({ ok: false, mark: "m1", error, end: "m1" });

const known = learn(
  learn(nothingKnown, ok({ devices: [{ deviceId: "dev1", name: "work laptop" }] })),
  ok({ tabs: [{ tabId: "dev1_tb-1", windowId: "dev1_wb-9", url: "https://a.example/", title: "A" }] }),
);

test.each([
  ["closeTabs", "Close tabs"],
  ["closeTabsByUrl", "Close tabs by URL"],
  ["savedIds", "Saved IDs"],
  ["mail.search_all", "Mail search all"],
])("%s is said as %s", (name, words) => {
  expect(spoken(name)).toBe(words);
});

test("a command: device, counts, what was not done, and what changed beside it", () => {
  const args = JSON.stringify({ tabIds: ["dev1_tb-1", "dev1_tb-2", "dev1_tb-3"] });
  const content = ok({
    deviceId: "dev1",
    deviceName: "work laptop",
    closedCount: 2,
    items: [{ id: "dev1_tb-3", status: "blocked_by_page", detail: "it asks" }],
    sideEffects: { closedWindowIds: ["dev1_wb-9"], focusedWindowId: "dev1_wb-8" },
    savedIds: ["s1", "s2"],
  });
  const said = describe("closeTabs", args, content, known);
  expect(said).toMatchObject({ title: "Close tabs", device: "work laptop", problems: [], edited: false });
  expect(said.facts).toEqual(["2 closed", "1 window closed", "1 window focused", "1 blocked by the page"]);
  expect(said.rows).toEqual([
    { id: "dev1_tb-1", title: "A", url: "https://a.example/", status: "done", ok: true, detail: "", newId: "" },
    { id: "dev1_tb-2", title: "", url: "", status: "done", ok: true, detail: "", newId: "" },
    { id: "dev1_tb-3", title: "", url: "", status: "blocked by the page", ok: false, detail: "it asks", newId: "" },
  ]);
});

test("rows that were left out for size are not called done", () => {
  const content = ok({
    closedCount: 1,
    items: [{ id: "x", status: "not_found" }],
    note: "3 of 4 rows of items left out for size",
  });
  const { rows } = describe("closeTabs", '{"tabIds":["x","y"]}', content, nothingKnown);
  expect(rows.map(({ status }) => status)).toEqual(["not there any more", "not stated"]);
});

test("several devices: counts are added, and what failed on one is said", () => {
  const content = ok({
    devices: [
      { deviceId: "dev1", deviceName: "work laptop", closedCount: 2 },
      { deviceId: "dev2", deviceName: "home", error: { code: "offline", message: "home is not connected" } },
    ],
  });
  const said = describe("closeTabs", '{"tabIds":["dev1_tb-1","dev2_tb-1"]}', content, known);
  expect(said).toMatchObject({ device: "work laptop, home", facts: ["2 closed"] });
  expect(said.problems).toEqual([
    { title: "device offline", message: "home is not connected", advice: expect.stringContaining("Nothing ran") },
  ]);
  expect(said.rows.map(({ status }) => status)).toEqual(["done", "did not run"]);
});

test("an error: what it is, and what to do", () => {
  const content = failed({ code: "approval_timed_out", message: "nobody decided", advice: "for the model" });
  const said = describe("closeTabs", '{"tabIds":["dev1_tb-1"]}', content, known);
  expect(said).toMatchObject({ device: "work laptop", facts: [] });
  expect(said.problems[0]).toMatchObject({ title: "nobody decided in time", message: "nobody decided" });
  expect(said.rows).toMatchObject([{ title: "A", status: "did not run", ok: false }]);
});

test("a query: how many rows, and whether there are more", () => {
  const said = describe(
    "listTabs",
    "{}",
    ok({ tabs: [{ tabId: "a" }, { tabId: "b" }], nextPageToken: "t" }),
    nothingKnown,
  );
  expect(said.facts).toEqual(["2 tabs", "and more"]);
  expect(describe("listTabs", "{}", ok({ tabs: [{ tabId: "a" }] }), nothingKnown).facts).toEqual(["1 tab"]);
  expect(describe("listDevices", "{}", ok({ devices: [{ deviceId: "d", name: "n" }] }), known).facts).toEqual([
    "1 device",
  ]);
});

test("what a person changed is said, and the rows are those that ran", () => {
  const content = ok({
    closedCount: 1,
    personSaid: "only one",
    ranInstead: [{ deviceId: "dev1", arguments: { tabIds: ["dev1_tb-2"] } }],
  });
  const said = describe("closeTabs", '{"tabIds":["dev1_tb-1","dev1_tb-2"]}', content, known);
  expect(said).toMatchObject({ edited: true, personSaid: "only one", facts: ["1 closed"] });
  expect(said.rows.map(({ id }) => id)).toEqual(["dev1_tb-2"]);
});

test.each([
  ["{half"],
  ["[]"],
  ["null"],
  ["7"],
  ['{"mark":"a","end":"b","data":{}}'],
  [ok(null)],
  [ok([1])],
  [ok({ items: "x", devices: 3 })],
])("anything else breaks nothing: %s", (content) => {
  expect(describe("x", content, content, nothingKnown).title).toBe("X");
  expect(learn(nothingKnown, content)).toBe(nothingKnown);
});

test("each status and error of the contract has words of its own", () => {
  const all = <E extends object>(of: E) => Object.values(of).filter((each): each is string => typeof each === "string");
  const statuses = all(ItemStatus).map((name) => statusText(name.toLowerCase()));
  expect(new Set(statuses).size).toBe(statuses.length);
  expect(statuses).not.toContain("blocked by page");
  const errors = all(ErrorCode).map((name) => errorText(name.toLowerCase()).title);
  expect(new Set(errors).size).toBe(errors.length - 1); // unspecified is a failure, too
  expect(errorText("denied").title).not.toBe(errorText("approval_timed_out").title);
  expect(statusText("of_a_newer_server")).toBe("of a newer server");
  expect(errorText("of_a_newer_server").title).toBe("of a newer server");
});

test("times", () => {
  expect([0.5, 65, 3700, 260_000].map(duration)).toEqual(["0 s", "1 min 05 s", "1 h 1 min", "3 d 0 h"]);
  expect([5, 65, 3700, 260_000].map(ago)).toEqual(["just now", "1 min ago", "1 h ago", "3 d ago"]);
});
