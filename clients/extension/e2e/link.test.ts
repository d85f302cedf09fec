import { ErrorCode } from "@throwbar/es/pb/command";
import { Scope } from "@throwbar/es/pb/option";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Browser } from "./harness/browser.js";
import { again, soon } from "./harness/fixture.js";
import { Pages } from "./harness/pages.js";
import { pairBrowser } from "./harness/pairing.js";
import { type Api, Server } from "./harness/server.js";

let server: Server;
let pages: Pages;
let browser: Browser;
let api: Api;
let page: Page;
let deviceId: string;

beforeAll(async () => {
  server = await Server.start();
  pages = await Pages.start();
  browser = await Browser.start(server.port, pages.port);
  api = await server.api();
  ({ deviceId, page } = await pairBrowser(browser, server, api, "work laptop"));
});

afterAll(async () => {
  await browser?.stop();
  await pages?.stop();
  await server?.remove();
});

test("the device says what it is and what it runs", async () => {
  const { devices } = await api.devices.listDevices({});
  expect(devices).toHaveLength(1);
  expect(devices[0]).toMatchObject({ name: "work laptop", online: true, platform: "linux" });
  expect(devices[0]?.agent).toMatch(/^Chromium \d+$/);
  expect(devices[0]?.actions).toContain("closeTabsByUrl");
  expect(devices[0]?.actions).toHaveLength(14);
  expect(deviceId).toMatch(/^[a-z2-7]{10}$/);
  expect(await page.textContent("#state")).toBe("Connected.");
});

const online = async () => (await api.devices.listDevices({ onlineOnly: true })).devices.map(({ name }) => name);

test("more panels than the browser has connections to a server leave the link its own", async () => {
  const { secret } = await api.tokens.createToken({ name: "side panel", scope: Scope.OPERATOR });
  await page.fill("#operator", secret);
  await page.click("#operator-button");
  await expect.poll(() => page.textContent("#operator-result"), soon).toContain("Saved");
  const panels = [];
  for (let n = 0; n < 8; n++) {
    panels.push(await browser.open("panel.html"));
  }
  const opened = async () => [...(await server.metrics("throwbar_links_opened_total")).values()];
  const before = await opened();
  for (let n = 0; n < 10; n++) {
    const begun = performance.now();
    const { outcomes } = await api.commands.dispatch({
      deviceIds: [deviceId],
      action: { kind: { case: "getActiveTab", value: {} } },
    });
    expect(outcomes[0]?.outcome.case).toBe("result");
    expect(performance.now() - begun).toBeLessThan(10_000);
  }
  await page.reload();
  await page.waitForSelector('#state[data-state="online"]');
  expect(await opened()).toEqual(before);
  for (const panel of panels) {
    await panel.close();
  }
});

test("a browser that is started again is there again by itself, with other ids", async () => {
  const url = "http://a.test/";
  const tabsAt = async () => (await api.browser.listTabs({ deviceId })).tabs.filter((tab) => tab.url === url);
  await browser.openTab(url);
  await expect.poll(tabsAt, soon).toHaveLength(1);
  const [before] = await tabsAt();
  await browser.down();
  await expect.poll(online, soon).toEqual([]);
  const kept = await api.browser.listTabs({ deviceId });
  expect(kept.tabs.map((tab) => tab.url)).toContain(url);
  expect(kept.devices[0]?.freshness?.live).toBe(false);
  await browser.up();
  await expect.poll(online, again).toEqual(["work laptop"]);
  await browser.openTab(url);
  const boot = (id = "") => /_t([a-z2-7]{4})-/.exec(id)?.[1];
  // Until the browser has told all that it has, what it had before is known.
  const old = boot(before?.tabId);
  const boots = async () => (await tabsAt()).map(({ tabId }) => (boot(tabId) === old ? "before" : "after"));
  await expect.poll(boots, again).toEqual(["after"]);
  const [after] = await tabsAt();
  expect(boot(after?.tabId)).toMatch(/^[a-z2-7]{4}$/);
  const { outcomes } = await api.commands.dispatch({
    action: { kind: { case: "closeTabs", value: { tabIds: [before?.tabId ?? ""] } } },
  });
  expect(outcomes[0]?.outcome).toMatchObject({ case: "error", value: { code: ErrorCode.NOT_FOUND } });
  expect(await tabsAt()).toHaveLength(1);
});
