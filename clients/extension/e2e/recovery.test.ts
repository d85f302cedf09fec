/** What happens when the browser stops the worker, when pages ask before they are left, and when the server goes away. */
import { ErrorCode } from "@throwbar/es/pb/command";
import type { DeviceChange } from "@throwbar/es/pb/commands";
import type { Dialog } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { again, Fixture, resultOf, soon, statuses } from "./harness/fixture.js";

let f: Fixture;

const a = "http://a.test/";
const b = "http://b.test/";
const guard = "http://guard.test/guard";

beforeAll(async () => {
  f = await Fixture.start();
});

afterAll(async () => {
  await f?.stop();
});

/** A worker that hangs was not stopped yet. */
let hanging = false;

/** The questions of pages that nobody has answered yet. */
let dialogs: Dialog[] = [];

afterEach(async () => {
  for (const dialog of dialogs) {
    await dialog.dismiss().catch(() => {}); // one of a page that is gone
  }
  dialogs = [];
  if (hanging) {
    await f.browser.killWorker(f.page);
    hanging = false;
  }
});

beforeEach(async () => {
  await f.closeOthers();
});

/** Opens a page that asks before it is left. It asks only where a person has done something on it. */
async function openGuarded() {
  const [page] = await f.open(guard);
  await page?.click("input");
  // Left to itself, the test's driver answers for the person at once.
  page?.on("dialog", (dialog) => dialogs.push(dialog));
  return f.idOf(guard);
}

/** Makes a call of the browser's API in the worker hang: before it does anything, or after it has done all. */
async function hang(method: "create" | "remove", when: "before" | "after"): Promise<void> {
  const worker = await f.browser.worker();
  hanging = true;
  await worker.evaluate(
    ([name, at]) => {
      const tabs = chrome.tabs as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
      const real = tabs[name];
      tabs[name] = async (...args) => {
        if (at === "after") {
          await real?.(...args);
        }
        Object.assign(globalThis, { hangs: true });
        return new Promise(() => {});
      };
    },
    [method, when] as const,
  );
}

/** Stops the worker once it hangs. */
async function killHanging(): Promise<void> {
  const worker = await f.browser.worker();
  await worker.evaluate(async () => {
    while (!(globalThis as { hangs?: boolean }).hangs) {
      await chrome.tabs.query({});
    }
  });
  await f.browser.killWorker(f.page);
  hanging = false;
}

const realCount = async (url: string) => (await f.realTabs()).filter((tab) => tab.url === url).length;

test("a page that asks is reported by the deadline, the other tabs are closed, and nothing waits for it", async () => {
  await f.open(a);
  const [idA, idGuard] = [await f.idOf(a), await openGuarded()];
  const closing = f.run<"closeTabs">({ case: "closeTabs", value: { tabIds: [idGuard, idA] } }, 8);
  await expect.poll(() => realCount(a), soon).toBe(0);
  expect(await f.run<"getActiveTab">({ case: "getActiveTab", value: {} })).toBeDefined();
  const result = await closing;
  expect(statuses(result.items)).toEqual([`${idGuard} BLOCKED_BY_PAGE`, `${idA} OK`]);
  expect(result.closedCount).toBe(1);
  expect(await realCount(guard)).toBe(1);
});

test("a page that asks is not counted as loaded again", async () => {
  const idGuard = await openGuarded();
  const result = await f.run<"reloadTabs">({ case: "reloadTabs", value: { tabIds: [idGuard] } }, 6);
  expect(result.reloadedCount).toBe(0);
  expect(statuses(result.items)).toEqual([`${idGuard} UNKNOWN_OUTCOME`]);
});

test("a worker that is stopped while it opens a tab opens no second one", async () => {
  await f.open(a);
  await hang("create", "after");
  const opening = f.dispatch({ case: "openTab", value: { url: b } });
  await killHanging();
  const result = resultOf<"openTab">(await opening);
  expect(await realCount(b)).toBe(1);
  expect(await f.realTab(result.tabId)).toMatchObject({ url: b });
});

test("a worker that is stopped before the tab is there says so and opens none", async () => {
  await hang("create", "before");
  const opening = f.fail({ case: "openTab", value: { url: b } });
  await killHanging();
  expect(await opening).toMatchObject({ code: ErrorCode.INTERRUPTED });
  expect(await realCount(b)).toBe(0);
});

test("a worker that is stopped while it closes tabs finds out by reading", async () => {
  await f.open(a, b);
  const tabIds = [await f.idOf(a), await f.idOf(b)];
  await hang("remove", "after");
  const closing = f.dispatch({ case: "closeTabs", value: { tabIds } });
  await killHanging();
  const result = resultOf<"closeTabs">(await closing);
  expect(result.closedCount).toBe(2);
  expect(statuses(result.items)).toEqual(tabIds.map((id) => `${id} OK`));
});

test("a page that asks is not asked again after the worker was stopped", async () => {
  await f.open(a);
  const [idA, idGuard] = [await f.idOf(a), await openGuarded()];
  const closing = f.dispatch({ case: "closeTabs", value: { tabIds: [idA, idGuard] } }, 20);
  await expect.poll(() => realCount(a), soon).toBe(0);
  await f.browser.killWorker(f.page);
  const result = resultOf<"closeTabs">(await closing);
  expect(statuses(result.items)).toEqual([`${idA} OK`, `${idGuard} UNKNOWN_OUTCOME`]);
  expect(result.closedCount).toBe(1);
  expect(await realCount(guard)).toBe(1);
});

/** Collects what happens to the device from now on. */
async function watchDevice() {
  const stop = new AbortController();
  const seen: DeviceChange[] = [];
  const events = f.api.commands.watchEvents({ deviceId: f.deviceId }, { signal: stop.signal });
  const done = (async () => {
    for await (const { event } of events) {
      if (event?.kind.case === "device") {
        seen.push(event.kind.value.change);
      }
    }
  })().catch(() => {});
  return {
    seen,
    stop: () => {
      stop.abort();
      return done;
    },
  };
}

test("a worker that is stopped while nothing happens does not cost the link", async () => {
  const device = await watchDevice();
  for (let n = 0; n < 3; n++) {
    await f.browser.killWorker(f.page);
    expect(await f.run<"getActiveTab">({ case: "getActiveTab", value: {} })).toBeDefined();
  }
  const url = `http://after.test/`;
  await f.browser.killWorker(f.page);
  await f.open(url);
  expect(await f.idOf(url)).toMatch(/_t/);
  await device.stop();
  expect(device.seen).toEqual([]);
});

test("ids stay what they are when the worker is started again", async () => {
  await f.open(a);
  const before = await f.idOf(a);
  await f.browser.killWorker(f.page);
  await f.open(b);
  expect(await f.idOf(a)).toBe(before);
  expect((await f.run<"closeTabs">({ case: "closeTabs", value: { tabIds: [before] } })).closedCount).toBe(1);
});

const online = async () => (await f.api.devices.listDevices({})).devices[0]?.online;

const opened = async () =>
  [...(await f.server.metrics("throwbar_links_opened_total")).values()].reduce((a, b) => a + b, 0);

test("the document that holds the link is opened again when it is gone", async () => {
  const before = await opened();
  const worker = await f.browser.worker();
  await worker.evaluate(() => chrome.offscreen.closeDocument());
  await f.browser.openTab(a);
  // It may come back so quickly that nobody sees the device offline.
  await expect.poll(opened, again).toBe(before + 1);
  await expect.poll(online, again).toBe(true);
  await f.inStep();
});

test.each(["SIGTERM", "SIGKILL"] as const)("the link comes back after the server got %s", async (signal) => {
  await f.server.down(signal);
  await f.page.waitForSelector('#state[data-state="waiting"]');
  await f.browser.openTab(a);
  await f.server.up();
  await expect.poll(online, again).toBe(true);
  await f.inStep();
  expect((await f.run<"closeTabs">({ case: "closeTabs", value: { tabIds: [await f.idOf(a)] } })).closedCount).toBe(1);
});

test("a device that was revoked stays away and asks to be paired again", async () => {
  await f.api.devices.revokeDevice({ deviceId: f.deviceId });
  await f.page.waitForSelector('#state[data-state="revoked"], #state[data-state="unpaired"]');
  await expect.poll(async () => (await f.api.devices.listDevices({ onlineOnly: true })).devices, soon).toEqual([]);
});
