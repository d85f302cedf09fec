/** The same through the command line: every command and every query, on a browser that it cannot reach by itself. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Fixture, soon } from "./harness/fixture.js";

let f: Fixture;

const a = "http://a.test/";
const b = "http://b.test/";
const c = "http://c.test/";

beforeAll(async () => {
  f = await Fixture.start("work laptop");
});

afterAll(async () => {
  await f?.stop();
});

const urls = async () => (await f.realTabs()).map(({ url }) => url).filter((url) => url.includes(".test/"));

type Row = Record<string, unknown>;

/** Runs a verb that has to succeed, and reads its JSON. */
async function json(...args: string[]): Promise<Row> {
  const { code, out, errors } = await f.server.cli(...args, "--output", "json");
  expect({ code, errors }).toEqual({ code: 0, errors: "" });
  return JSON.parse(out) as Row;
}

/** Runs a command that has to succeed, and returns its result and the ids that bring back what it closed. */
async function call(name: string, ...args: string[]): Promise<{ result: Row; savedIds: string[] }> {
  const answer = (await json("call", name, ...args)) as {
    outcomes: { result: Record<string, Row>; savedIds?: string[] }[];
  };
  const [outcome] = answer.outcomes;
  expect(answer.outcomes).toHaveLength(1);
  return { result: outcome?.result[name] ?? {}, savedIds: outcome?.savedIds ?? [] };
}

const device = ["--device", "work laptop"];

test("tabs are found and closed from a terminal, and what was closed comes back", async () => {
  await f.closeOthers();
  await f.open(a, b, c);
  const found = (await json("tabs", "--query", "a.test")) as { tabs: { tabId: string; url: string }[] };
  expect(found.tabs.map(({ url }) => url)).toEqual([a]);
  const id = found.tabs[0]?.tabId ?? "";
  const { result, savedIds } = await call("closeTabs", "--tab-ids", id);
  expect(result).toMatchObject({ closedCount: 1 });
  expect(await urls()).toEqual([b, c]);
  const gone = await f.server.cli("call", "closeTabs", "--tab-ids", id);
  expect([gone.code, gone.out]).toEqual([1, expect.stringContaining("not found")]);
  const back = await call("restoreTabs", "--saved-ids", savedIds.join(","));
  expect(back.result).toMatchObject({ restoredCount: 1 });
  expect((await urls()).sort()).toEqual([a, b, c]);
});

test("each of the other commands does in the browser what was asked", async () => {
  if (!(await urls()).includes(b)) {
    await f.open(b);
  }
  const opened = await call("openTab", ...device, "--url", "http://d.test/", "--active=false");
  const id = String(opened.result.tabId);
  const real = () => f.realTab(id);
  expect(await real()).toMatchObject({ url: "http://d.test/", active: false });

  expect((await call("activateTab", "--tab-id", id)).result).toMatchObject({ activated: true });
  expect(await real()).toMatchObject({ active: true });
  expect((await call("getActiveTab", ...device)).result).toMatchObject({ tabId: id });

  await call("navigateTab", "--tab-id", id, "--url", "http://e.test/");
  await expect.poll(async () => (await real())?.url, soon).toBe("http://e.test/");
  expect((await call("reloadTabs", "--tab-ids", id)).result).toMatchObject({ reloadedCount: 1 });

  expect((await call("pinTabs", "--tab-ids", id, "--pinned")).result).toMatchObject({ pinnedCount: 1 });
  expect(await real()).toMatchObject({ pinned: true });
  expect((await call("pinTabs", "--tab-ids", id, "--pinned=false")).result).toMatchObject({ pinnedCount: 1 });
  expect(await real()).toMatchObject({ pinned: false });
  expect((await call("muteTabs", "--tab-ids", id, "--muted")).result).toMatchObject({ mutedCount: 1 });
  expect(await real()).toMatchObject({ muted: true });

  await call("groupTabs", "--tab-ids", id, "--title", "terminal", "--colour", "pink");
  await expect
    .poll(async () => ((await json("query", "listTabGroups")) as { groups: Row[] }).groups, soon)
    .toMatchObject([{ title: "terminal", colour: "COLOUR_PINK" }]);
  expect((await call("ungroupTabs", "--tab-ids", id)).result).toMatchObject({ ungroupedCount: 1 });
  expect(await real()).toMatchObject({ groupId: -1 });

  expect((await call("moveTabs", "--tab-ids", id, "--index", "0")).result).toMatchObject({ movedCount: 1 });
  expect(await real()).toMatchObject({ index: 0 });

  expect((await call("saveTabs", "--tab-ids", id, "--close")).result).toMatchObject({ savedCount: 1, closedCount: 1 });
  expect(await real()).toBeUndefined();
  const saved = (await json("query", "listSavedTabs")) as { savedTabs: { url: string }[] };
  expect(new Set(saved.savedTabs.map(({ url }) => url))).toEqual(new Set(["http://e.test/"]));

  const byUrl = await call("closeTabsByUrl", ...device, "--url", "http://b.test/*");
  expect(byUrl.result).toMatchObject({ closed: true, closedCount: 1 });
  expect(await urls()).not.toContain(b);
  expect((await call("closeTabsByUrl", ...device, "--url", "http://b.test/*")).result).toMatchObject({
    closed: false,
    reason: "not_found",
  });
});

test("the seven queries answer for a browser that is gone, and a command is refused at once", async () => {
  await f.inStep();
  const before = await f.serverTabs();
  await f.browser.down();
  await expect
    .poll(async () => ((await json("devices")) as { devices: Row[] }).devices, soon)
    .toMatchObject([{ online: false }]);
  const stale = { devices: [{ freshness: { live: false, asOf: expect.any(String) as string } }] };
  const tabs = (await json("query", "listTabs")) as { tabs: Row[] };
  expect(tabs.tabs).toHaveLength(before.length);
  expect(tabs).toMatchObject(stale);
  expect(await json("query", "searchTabs", "--query", "c.test")).toMatchObject({ total: 1, ...stale });
  expect(await json("query", "listWindows")).toMatchObject({ windows: [{ tabCount: before.length }], ...stale });
  expect(await json("query", "listTabGroups")).toMatchObject(stale);
  expect(await json("query", "listDevices")).toMatchObject({ devices: [{ name: "work laptop", online: false }] });
  const counted = (await json("query", "countByDomain")) as { domains: Row[] };
  expect(counted.domains).toContainEqual({ domain: "c.test", tabCount: 1 });
  expect(((await json("query", "listSavedTabs")) as { savedTabs: Row[] }).savedTabs).not.toEqual([]);

  const commands = ((await json("history")) as { commands: Row[] }).commands.length;
  const refused = await f.server.cli("call", "openTab", ...device, "--url", a);
  expect([refused.code, refused.errors]).toEqual([3, expect.stringContaining("offline")]);
  expect(((await json("history")) as { commands: Row[] }).commands).toHaveLength(commands);
});
