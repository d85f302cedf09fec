/** A person pauses the browser: commands are refused from that moment on, whatever becomes of the worker, and nothing is lost. */
import { ErrorCode } from "@throwbar/es/pb/command";
import type { Dialog } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Fixture, soon, statuses } from "./harness/fixture.js";

let f: Fixture;

beforeAll(async () => {
  f = await Fixture.start();
});

afterAll(async () => {
  await f?.stop();
});

let dialogs: Dialog[] = [];

beforeEach(async () => {
  await f.closeOthers();
});

afterEach(async () => {
  for (const dialog of dialogs) {
    await dialog.dismiss().catch(() => {}); // one of a page that is gone
  }
  dialogs = [];
  await f.pause(false);
});

const open = (url: string) => f.dispatch({ case: "openTab", value: { url } });

const known = async () => (await f.api.devices.listDevices({})).devices[0]?.paused;

test("a paused browser refuses each command with a reason, says so on its icon, and its tabs are still known", async () => {
  await f.pause(true);
  await expect.poll(known, soon).toBe(true);
  const error = await f.fail({ case: "getActiveTab", value: {} });
  expect(error.code).toBe(ErrorCode.REFUSED);
  expect(error.message).toMatch(
    /^a person has paused this browser.* it is resumed there, in the extension's panel or settings/,
  );
  const other = await f.browser.openTab("http://seen.test/");
  await f.inStep();
  await other.close();
  await f.inStep();
  await expect.poll(async () => (await f.badge()).title, soon).toContain("Paused: commands are refused.");
  await expect.poll(async () => (await f.badge()).text, soon).toBe("❚❚");
  await f.pause(false);
  await expect.poll(known, soon).toBe(false);
  expect(await f.run<"getActiveTab">({ case: "getActiveTab", value: {} })).toBeDefined();
  await expect.poll(async () => (await f.badge()).text, soon).toBe("");
});

test("it stays paused in the next worker, after a restart of the server, and after one of the browser", async () => {
  await f.pause(true);
  const refused = async () => (await f.fail({ case: "getActiveTab", value: {} })).code;
  await f.browser.killWorker(f.page);
  expect(await refused()).toBe(ErrorCode.REFUSED);
  await f.server.down();
  await f.server.up();
  await f.online();
  await expect.poll(known, soon).toBe(true);
  expect(await refused()).toBe(ErrorCode.REFUSED);
  await f.restartBrowser();
  expect(await refused()).toBe(ErrorCode.REFUSED);
  await f.page.waitForSelector("#paused:checked");
  await expect.poll(async () => (await f.badge()).text, soon).toBe("❚❚");
});

test("what has begun is finished", async () => {
  const guard = "http://guard.test/guard";
  const [page] = await f.open(guard, "http://a.test/");
  await page?.click("input");
  page?.on("dialog", (dialog) => dialogs.push(dialog));
  const [idGuard, idA] = [await f.idOf(guard), await f.idOf("http://a.test/")];
  const closing = f.run<"closeTabs">({ case: "closeTabs", value: { tabIds: [idGuard, idA] } }, 60);
  await expect.poll(() => f.realCount("http://a.test/"), soon).toBe(0);
  await expect.poll(() => dialogs.length, soon).toBe(1);
  await f.pause(true);
  await dialogs.pop()?.accept();
  const result = await closing;
  expect(statuses(result.items)).toEqual([`${idGuard} OK`, `${idA} OK`]);
});

test("a pause among commands that arrive: each has opened its tab or was refused, and none begins afterwards", async () => {
  for (let round = 0; round < 3; round++) {
    const urls = Array.from({ length: 12 }, (_, n) => `http://race.test/${round}-${n}`);
    const running = Promise.all(urls.map(open));
    // Somewhere in the middle of them.
    await expect.poll(() => f.realCount(urls[round] ?? ""), { timeout: 10_000, interval: 1 }).toBe(1);
    await f.pause(true);
    const outcomes = await running;
    const opened = await Promise.all(urls.map((url) => f.realCount(url)));
    expect(outcomes.map(({ outcome }) => (outcome.case === "result" ? 1 : 0))).toEqual(opened);
    for (const { outcome } of outcomes) {
      expect(outcome.case === "error" ? outcome.value.code : ErrorCode.REFUSED).toBe(ErrorCode.REFUSED);
    }
    await f.pause(false);
    await f.closeOthers();
  }
});
