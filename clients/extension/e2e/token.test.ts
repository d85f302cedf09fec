/** The device's token in a real browser: bound to the extension that it was paired from, and replaced when asked for. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Browser } from "./harness/browser.js";
import { soon } from "./harness/fixture.js";
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
  ({ deviceId, page } = await pairBrowser(browser, server, api, "laptop"));
});

afterAll(async () => {
  await browser?.stop();
  await pages?.stop();
  await server?.remove();
});

interface Kept {
  readonly token: string;
  readonly previous?: string;
}

const kept = () => page.evaluate(async () => (await chrome.storage.local.get("pairing")).pairing as Kept);
const online = async () => (await api.devices.listDevices({ onlineOnly: true })).devices.map(({ name }) => name);

/** Calls a method of devices outside the browser, with an Origin of choice. Node's fetch sends the header as it is. */
async function call(token: string, origin?: string): Promise<number> {
  const answer = await fetch(`${server.url}/throwbar.device.v1.DeviceService/Report`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Authorization: `Bearer ${token}`,
      ...(origin === undefined ? {} : { Origin: origin }),
    },
    body: "{}",
  });
  await answer.arrayBuffer();
  return answer.status;
}

test("the token is good from this extension only: the browser sends its origin by itself", async () => {
  const { token } = await kept();
  const own = await page.evaluate(() => location.origin);
  expect(own).toMatch(/^chrome-extension:\/\/[a-p]{32}$/);
  expect(await call(token, own)).toBe(400); // let through, to a report that is none
  expect(await call(token)).toBe(403);
  expect(await call(token, "chrome-extension://ponmlkjihgfedcbaponmlkjihgfedcba")).toBe(403);
  expect(await call(token, "https://page.example")).toBe(403);
  expect(await call(token, server.url)).toBe(403);
});

test("the owner has it replaced: the new one is in use, the old one is void, and the browser stays", async () => {
  const before = await kept();
  const own = await page.evaluate(() => location.origin);
  await api.devices.rotateDevice({ deviceId });
  await expect.poll(async () => (await kept()).token, soon).not.toBe(before.token);
  await expect.poll(async () => (await kept()).previous, soon).toBeUndefined();
  await expect.poll(online, soon).toEqual(["laptop"]);
  expect(await call(before.token, own)).toBe(401);
  expect(await call((await kept()).token, own)).toBe(400);
  const { outcomes } = await api.commands.dispatch({
    deviceIds: [deviceId],
    action: { kind: { case: "openTab", value: { url: `http://a.test/` } } },
  });
  expect(outcomes[0]?.outcome.case).toBe("result");
});

test("a rotation that is asked for while the browser is away is made up for", async () => {
  const before = await kept();
  await browser.down();
  await expect.poll(online, soon).toEqual([]);
  await api.devices.rotateDevice({ deviceId });
  await browser.up();
  page = await browser.open("options.html");
  await expect.poll(async () => (await kept()).token, soon).not.toBe(before.token);
  await expect.poll(async () => (await kept()).previous, soon).toBeUndefined();
  await expect.poll(online, soon).toEqual(["laptop"]);
});
