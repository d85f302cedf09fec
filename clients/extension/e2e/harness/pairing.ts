import type { Page } from "playwright-core";
import { expect, vi } from "vitest";
import type { Browser } from "./browser.js";
import type { Api } from "./server.js";

/** Pairs through the settings page, as a person does. Leaves the page open. */
export async function pairBrowser(
  browser: Browser,
  server: { readonly url: string },
  api: Api,
  name: string,
): Promise<{ readonly deviceId: string; readonly page: Page }> {
  const { code, checkWord } = await api.devices.createPairingCode({});
  const page = await browser.open("options.html");
  await page.fill("#server", server.url);
  await page.fill("#code", code.toLowerCase());
  await page.fill("#name", name);
  await page.click("#pair-button");
  await page.waitForSelector("#check-word");
  expect(await page.textContent("#check-word")).toBe(checkWord);
  await page.waitForSelector('#state[data-state="online"]');
  const online = async () => {
    const { devices } = await api.devices.listDevices({ onlineOnly: true });
    const device = devices.find((each) => each.name === name);
    expect(device, JSON.stringify(devices.map(({ name: known, agent }) => [known, agent]))).toBeDefined();
    return device?.deviceId ?? "";
  };
  return { deviceId: await vi.waitFor(online, { timeout: 20_000 }), page };
}
