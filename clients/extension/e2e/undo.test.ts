/**
 * A mass close is undone after the browser was stopped and started again on its profile: windows, order, pins, mutes and groups
 * are what they were.
 *
 * THROWBAR_MANY_TABS=200 also closes that many tabs with one command, and brings them back.
 */
import { createClient } from "@connectrpc/connect";
import type { Case, ResultOf } from "@throwbar/es/commands";
import { ApprovalService } from "@throwbar/es/pb/approvals";
import { ItemStatus } from "@throwbar/es/pb/state";
import { createTransport } from "@throwbar/es/transport";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Fixture, type Kind, resultOf, soon } from "./harness/fixture.js";

let f: Fixture;

beforeAll(async () => {
  f = await Fixture.start();
});

afterEach(async () => {
  await f.closeOthers();
});

afterAll(async () => {
  await f?.stop();
});

const ours = (url: string) => url.includes(".test/");

/** What has to come back: each window's tabs in order, and how each one is. Windows have no order of their own. */
async function shape(): Promise<string[]> {
  const windows = await f.page.evaluate(async () => {
    const groups = new Map(
      (await chrome.tabGroups.query({})).map((group) => [group.id, `${group.title} ${group.color}`]),
    );
    const all = await chrome.windows.getAll({ populate: true });
    return all.map(({ tabs = [] }) =>
      tabs.map(({ url = "", pendingUrl, pinned, mutedInfo, groupId }) => ({
        url: pendingUrl || url,
        look: [pinned ? "pinned" : "", mutedInfo?.muted ? "muted" : "", groups.get(groupId) ?? ""].join(" ").trim(),
      })),
    );
  });
  return windows
    .map((tabs) => tabs.filter(({ url }) => ours(url)).map(({ url, look }) => `${url} ${look}`.trim()))
    .filter((tabs) => tabs.length > 0)
    .map((tabs) => tabs.join("\n"))
    .sort();
}

const names = (host: string, count: number) => Array.from({ length: count }, (_, n) => `http://${host}${n}.test/`);

interface Look {
  readonly pinned?: readonly number[];
  readonly muted?: readonly number[];
  readonly groups?: readonly {
    readonly title: string;
    readonly color: "pink" | "cyan";
    readonly of: readonly number[];
  }[];
}

/** Opens tabs in a window of their own, or in that of the settings page, and arranges them. */
function arrange(urls: readonly string[], where: "here" | "window", look: Look): Promise<void> {
  return f.page.evaluate(
    async ([all, place, how]) => {
      const ids: number[] = [];
      if (place === "window") {
        const made = await chrome.windows.create({ url: [...all], focused: false });
        ids.push(...(made?.tabs ?? []).map(({ id = 0 }) => id));
      } else {
        for (const url of all) {
          ids.push((await chrome.tabs.create({ url, active: false })).id ?? 0);
        }
      }
      for (const at of how.muted ?? []) {
        await chrome.tabs.update(ids[at] ?? 0, { muted: true });
      }
      for (const { title, color, of } of how.groups ?? []) {
        const tabIds = of.map((at) => ids[at] ?? 0) as [number, ...number[]];
        const { windowId } = await chrome.tabs.get(tabIds[0]);
        const group = await chrome.tabs.group({ tabIds, createProperties: { windowId } });
        await chrome.tabGroups.update(group, { title, color });
      }
      for (const at of how.pinned ?? []) {
        await chrome.tabs.update(ids[at] ?? 0, { pinned: true });
      }
    },
    [urls, where, look] as const,
  );
}

/** Runs a command that touches so many tabs that a person has to agree. */
async function approved<C extends Case>(kind: Extract<Kind, { case: C }>): Promise<ResultOf<C>> {
  const token = await f.server.ownerToken();
  const approvals = createClient(ApprovalService, createTransport({ baseUrl: f.server.url, token: () => token }));
  const outcome = f.dispatch(kind, 60);
  const waiting = async () => (await approvals.listApprovals({ pendingOnly: true })).approvals[0];
  await expect.poll(waiting, soon).toBeDefined();
  const { approvalId = "", hash = "" } = (await waiting()) ?? {};
  await approvals.decide({ decisions: [{ approvalId, verdict: { case: "approve", value: { hash } } }] });
  return resultOf<C>(await outcome);
}

const tabIds = async () => (await f.serverTabs()).filter(({ url }) => ours(url)).map(({ tabId }) => tabId);

async function undo(): Promise<ResultOf<"restoreTabs">> {
  const { outcomes } = await f.api.commands.undo({});
  const [outcome] = outcomes;
  if (outcome === undefined) {
    throw new Error("nothing was undone");
  }
  return resultOf<"restoreTabs">(outcome);
}

test("a mass close of three windows is undone after a restart of the browser", async () => {
  await arrange(names("a", 7), "here", { pinned: [0, 1], muted: [1, 3] });
  await arrange(names("b", 10), "window", {
    groups: [
      { title: "read", color: "pink", of: [1, 2, 3] },
      { title: "work", color: "cyan", of: [6, 7] },
    ],
    muted: [2],
  });
  await arrange(names("c", 8), "window", { pinned: [0], groups: [{ title: "read", color: "cyan", of: [4, 5, 6, 7] }] });
  await f.inStep();
  const before = await shape();
  expect(before).toHaveLength(3);
  const closed = await approved<"closeTabs">({ case: "closeTabs", value: { tabIds: await tabIds() } });
  expect(closed).toMatchObject({ closedCount: 25 });
  expect(closed.sideEffects?.closedWindowIds).toHaveLength(2);
  expect(closed.sideEffects?.removedGroupIds).toHaveLength(3);
  expect(await shape()).toEqual([]);

  await f.restartBrowser();
  const back = await undo();
  expect(back.restoredCount).toBe(25);
  expect(back.sideEffects?.openedWindowIds).toHaveLength(3);
  expect(back.sideEffects?.focusedWindowId).toBeUndefined();
  await expect.poll(shape, soon).toEqual(before);
  await f.inStep();
  // What is back is not kept any more.
  await expect(f.api.commands.undo({})).rejects.toThrow("nothing to undo");
});

test("undo brings back what it can, says what it cannot, and keeps that", async () => {
  await arrange([...names("d", 2), "chrome://version/", ...names("e", 1)], "window", {});
  await f.inStep();
  const before = await shape();
  const all = (await f.serverTabs()).filter(({ url }) => ours(url) || url.startsWith("chrome://version"));
  const close = { case: "closeTabs", value: { tabIds: all.map(({ tabId }) => tabId) } } as const;
  expect(await f.run<"closeTabs">(close)).toMatchObject({ closedCount: 4 });
  const back = await undo();
  expect(back.restoredCount).toBe(3);
  expect(back.items.map(({ status }) => status).sort()).toEqual(
    [ItemStatus.OK, ItemStatus.OK, ItemStatus.OK, ItemStatus.REFUSED_URL].sort(),
  );
  await expect.poll(shape, soon).toEqual(before);
  // The one that did not come back is still kept, and asked for again.
  const again = await undo();
  expect(again.items.map(({ status }) => status)).toEqual([ItemStatus.REFUSED_URL]);
});

const many = Number(process.env.THROWBAR_MANY_TABS ?? "0");

test.runIf(many > 0)(
  "many tabs are closed by one command, and come back",
  async () => {
    await arrange(
      Array.from({ length: many }, (_, n) => `http://many.test/${n}`),
      "window",
      {},
    );
    const patient = { timeout: 120_000, interval: 200 };
    await expect.poll(async () => (await tabIds()).length, patient).toBe(many);
    const before = await shape();
    const closing = performance.now();
    expect(await approved<"closeTabs">({ case: "closeTabs", value: { tabIds: await tabIds() } })).toMatchObject({
      closedCount: many,
    });
    const undoing = performance.now();
    expect((await undo()).restoredCount).toBe(many);
    console.log(`closed in ${undoing - closing} ms, back in ${performance.now() - undoing} ms`);
    await expect.poll(shape, patient).toEqual(before);
  },
  300_000,
);
