/** Chromium does what the unit tests' fake does. */
import type { Dialog, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Driver, type Ended, scenarios } from "../test/semantics.js";
import { Browser } from "./harness/browser.js";
import { Pages } from "./harness/pages.js";

let pages: Pages;
let browser: Browser;
let page: Page;
let dialogs: Dialog[] = [];

beforeAll(async () => {
  pages = await Pages.start();
  browser = await Browser.start(1, pages.port);
  page = await browser.open("options.html");
});

afterEach(async () => {
  for (const dialog of dialogs) {
    await dialog.dismiss().catch(() => {});
  }
  dialogs = [];
  for (const each of browser.context.pages()) {
    if (each !== page) {
      await each.close();
    }
  }
});

afterAll(async () => {
  await browser?.stop();
  await pages?.stop();
});

/** Runs a call of the browser's API in the extension's page. */
function call(name: "remove" | "group" | "update", ...args: unknown[]): Promise<Ended> {
  return page.evaluate(
    async ([method, values]) => {
      const tabs = chrome.tabs as unknown as Record<string, (...all: unknown[]) => Promise<unknown>>;
      const done = (tabs[method] as (...all: unknown[]) => Promise<unknown>)(...values).then(
        () => "done" as const,
        () => "refused" as const,
      );
      return Promise.race([done, new Promise<"pending">((resolve) => setTimeout(() => resolve("pending"), 1500))]);
    },
    [name, args] as const,
  );
}

const idOf = (url: string) =>
  expect
    .poll(async () => (await browser.tabs(page)).find((tab) => tab.url === url)?.id)
    .toBeDefined()
    .then(async () => (await browser.tabs(page)).find((tab) => tab.url === url)?.id ?? 0);

const driver: Driver = {
  open: async (name, where) => {
    const url = `http://${name}.test/`;
    if (where === "window") {
      await page.evaluate(async (to) => chrome.windows.create({ url: to }), url);
    } else {
      await browser.openTab(url);
    }
    return idOf(url);
  },
  openGuarded: async (name) => {
    const url = `http://${name}.test/guard`;
    const guarded = await browser.openTab(url);
    await guarded.click("input");
    guarded.on("dialog", (dialog) => dialogs.push(dialog));
    return idOf(url);
  },
  tabs: async () => (await browser.tabs(page)).map((tab) => ({ ...tab, grouped: tab.groupId >= 0 })),
  remove: (ids) => call("remove", ids),
  group: (tabIds, windowId) => call("group", { tabIds, createProperties: { windowId } }),
  pin: (id) => call("update", id, { pinned: true }),
  moveTo: (id, index) =>
    page.evaluate(async ([tab, to]) => (await chrome.tabs.move(tab, { index: to })).index, [id, index] as const),
  discard: (id) => page.evaluate(async (tab) => (await chrome.tabs.discard(tab))?.id ?? 0, id),
};

test.each(scenarios)("$name", async ({ run, expected }) => {
  expect(await run(driver)).toEqual(expected);
});
