/** Every profile is a device of its own; a copy of one takes its place, and the two neither fight nor do one command twice. */
import { cp, rm } from "node:fs/promises";
import { ErrorCode } from "@throwbar/es/pb/command";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Browser } from "./harness/browser.js";
import { Fixture, soon } from "./harness/fixture.js";
import { pairBrowser } from "./harness/pairing.js";

let f: Fixture;
const others: Browser[] = [];

beforeAll(async () => {
  f = await Fixture.start("first");
});

afterAll(async () => {
  await f?.stop();
});

beforeEach(async () => {
  await f.whole();
  if ((await f.page.getAttribute("#state", "data-state")) === "replaced") {
    await f.page.click("#restart");
    await f.online();
  }
});

afterEach(async () => {
  for (const browser of others.splice(0)) {
    await browser.stop();
  }
});

/** A browser with a copy of the profile of the first, which does not run. */
async function copied(): Promise<Browser> {
  const copy = await Browser.start(f.server.port, f.pages.port);
  others.push(copy);
  await copy.down();
  const whole = async () => {
    // Helper processes of a browser that has ended write a moment longer, and what they take away cannot be copied.
    await rm(copy.profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    await cp(f.browser.profile, copy.profile, { recursive: true });
    return true;
  };
  await expect.poll(whole, { timeout: 20_000, interval: 200 }).toBe(true);
  return copy;
}

const devices = async () => (await f.api.devices.listDevices({})).devices;
const opened = async () =>
  [...(await f.server.metrics("throwbar_links_opened_total")).values()].reduce((a, b) => a + b, 0);
const standing = async () => [...(await f.server.metrics("throwbar_links")).values()].reduce((a, b) => a + b, 0);

test("the code and the check word are those that the command line shows, and the profile keeps its id over restarts", async () => {
  const shown = await f.server.cli("pair", "--no-wait", "--output", "json");
  expect(shown.errors).toBe("");
  const { code, checkWord } = JSON.parse(shown.out) as { code: string; checkWord: string };
  const second = await Browser.start(f.server.port, f.pages.port);
  others.push(second);
  const page = await second.open("options.html");
  await page.fill("#server", f.server.url);
  await page.fill("#code", code);
  await page.fill("#name", "second");
  await page.click("#pair-button");
  await page.waitForSelector("#check-word");
  expect(await page.textContent("#check-word")).toBe(checkWord);
  await page.waitForSelector('#state[data-state="online"]');
  const connected = async () => (await devices()).filter(({ online }) => online);
  await expect.poll(async () => (await connected()).map(({ name }) => name).sort(), soon).toEqual(["first", "second"]);
  const all = await connected();
  expect(new Set(all.map(({ deviceId }) => deviceId)).size).toBe(2);
  for (const { agent, platform } of all) {
    expect(agent).toMatch(/^\S.* \d+$/);
    expect(platform).toBe("linux");
  }
  await f.restartBrowser();
  expect((await devices()).find(({ name }) => name === "first")?.deviceId).toBe(f.deviceId);
});

test("a name that is given on the server is shown in the browser from its next connection on, and without one", async () => {
  await f.api.devices.renameDevice({ deviceId: f.deviceId, name: "study" });
  await f.page.evaluate(async () => chrome.runtime.sendMessage({ to: "link", kind: "restart" }));
  await expect.poll(() => f.page.textContent("#who"), soon).toContain("study, at ");
  await expect.poll(async () => (await f.badge()).title, soon).toContain(`study at ${f.server.url}`);
  await f.server.down();
  await f.page.waitForSelector('#state[data-state="waiting"]');
  await f.page.reload();
  await f.page.waitForSelector('#state[data-state="waiting"]');
  expect(await f.page.textContent("#who")).toContain("study, at ");
  await f.server.up();
  await f.online();
});

test("a copied profile takes the place, the older stays away until a person asks, and no command is done twice", async () => {
  await f.closeOthers();
  f.pages.hits.clear();
  await f.browser.down();
  const copy = await copied();
  await f.browser.up();
  f.page = await f.browser.open("options.html");
  await f.online();
  const before = await opened();

  await copy.up();
  const copyPage = await copy.open("options.html");
  await copyPage.waitForSelector('#state[data-state="online"]');
  await f.page.waitForSelector('#state[data-state="replaced"]');
  await expect.poll(async () => (await f.badge()).text, soon).toBe("!");
  expect(await f.page.textContent("section")).toContain("pair it anew below");

  // What wakes a worker does not make the older one come back, nor does another worker or another document.
  await f.browser.openTab("http://a.test/");
  await f.browser.killWorker(f.page);
  await f.page.evaluate(() => chrome.runtime.sendMessage({ to: "link", kind: "check" }));
  const worker = await f.browser.worker();
  await worker.evaluate(() => chrome.offscreen.closeDocument());
  await f.browser.openTab("http://b.test/");
  await f.page.reload();
  await f.page.waitForSelector('#state[data-state="replaced"]');
  expect(await standing()).toBe(1);
  expect(await opened()).toBe(before + 1);

  // Only the copy does what is asked for.
  const once = "http://once.test/";
  const at = (browser: Browser, page = f.page) =>
    browser.tabs(page).then((tabs) => tabs.filter(({ url }) => url === once).length);
  const outcome = await f.dispatch({ case: "openTab", value: { url: once } });
  expect(outcome.outcome.case).toBe("result");
  expect([await at(f.browser), await at(copy, copyPage)]).toEqual([0, 1]);

  // A person takes it back: now the copy stays away.
  await f.page.click("#restart");
  await f.page.waitForSelector('#state[data-state="online"]');
  await copyPage.waitForSelector('#state[data-state="replaced"]');
  await f.dispatch({ case: "openTab", value: { url: once } });
  expect([await at(f.browser), await at(copy, copyPage)]).toEqual([1, 1]);
  expect(await opened()).toBe(before + 2);
  expect(await standing()).toBe(1);

  // Paired anew, the copy is a device of its own.
  const { deviceId } = await pairBrowser(copy, f.server, f.api, "copy");
  expect(deviceId).not.toBe(f.deviceId);
  await f.online();
  await expect.poll(standing, soon).toBe(2);
  await expect.poll(() => f.pages.hits.get(once), soon).toBe(2);
});

test("a command that is under way in the older browser is not done again by a copy that takes its place", async () => {
  await f.closeOthers();
  f.pages.hits.clear();
  await f.browser.down();
  const copy = await copied();
  await f.browser.up();
  f.page = await f.browser.open("options.html");
  await f.online();
  const url = "http://under-way.test/";
  const worker = await f.browser.worker();
  await worker.evaluate(() => {
    const { create } = chrome.tabs;
    chrome.tabs.create = (async (tab: chrome.tabs.CreateProperties) => {
      await create(tab);
      return new Promise(() => {}); // done, and nobody hears of it
    }) as typeof create;
  });
  const opening = f.fail({ case: "openTab", value: { url } });
  await expect.poll(() => f.realCount(url), soon).toBe(1);
  await copy.up();
  const page = await copy.open("options.html");
  await page.waitForSelector('#state[data-state="online"]');
  expect(await opening).toMatchObject({ code: ErrorCode.INTERRUPTED });
  // The newer one has answered something since, so whatever it was sent has come.
  await f.run<"getActiveTab">({ case: "getActiveTab", value: {} });
  expect((await copy.tabs(page)).filter((tab) => tab.url === url)).toEqual([]);
  expect(f.pages.hits.get(url)).toBe(1);
});
