import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Browser } from "./harness/browser.js";
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
