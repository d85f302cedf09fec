/** A server, pages, and a browser that is paired: what most tests start from. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Case, ResultOf } from "@throwbar/es/commands";
import type { ActionSchema, CommandError, Result } from "@throwbar/es/pb/command";
import type { DeviceOutcome } from "@throwbar/es/pb/commands";
import { type ItemOutcome, ItemStatus, type Tab } from "@throwbar/es/pb/state";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { Browser, type RealTab } from "./browser.js";
import { Pages } from "./pages.js";
import { pairBrowser } from "./pairing.js";
import { type Api, Server } from "./server.js";
import { Tap } from "./tap.js";

/** How long the server's view may lag behind the browser before a test calls it wrong. */
export const soon = { timeout: 20_000, interval: 50 };

/** How long a browser may take to be connected again: it waits longer and longer between its attempts. */
export const again = { timeout: 45_000, interval: 50 };

export type Kind = NonNullable<MessageInitShape<typeof ActionSchema>["kind"]>;

export class Fixture {
  readonly server: Server;
  readonly pages: Pages;
  readonly browser: Browser;
  readonly api: Api;
  /** The settings page: a page of the extension that stays open, until the browser is restarted. */
  page: Page;
  readonly deviceId: string;
  /** Between the browser and the server, if it was asked for. */
  readonly tap: Tap | undefined;

  private constructor(parts: Pick<Fixture, "server" | "pages" | "browser" | "api" | "page" | "deviceId" | "tap">) {
    this.server = parts.server;
    this.pages = parts.pages;
    this.browser = parts.browser;
    this.api = parts.api;
    this.page = parts.page;
    this.deviceId = parts.deviceId;
    this.tap = parts.tap;
  }

  static async start(name = "work laptop", env: Record<string, string> = {}, tapped = false): Promise<Fixture> {
    const server = await Server.start(env);
    let browser: Browser | undefined;
    try {
      const tap = tapped ? await Tap.start(server.port) : undefined;
      const pages = await Pages.start();
      browser = await Browser.start((tap ?? server).port, pages.port);
      const api = await server.api();
      const paired = await pairBrowser(browser, tap ?? server, api, name);
      return new Fixture({ server, pages, browser, api, tap, ...paired });
    } catch (error) {
      // Nobody else knows them.
      await browser?.stop();
      await server.remove();
      throw error;
    }
  }

  async stop(): Promise<void> {
    try {
      await this.browser.stop();
    } finally {
      await this.pages.stop();
      await this.tap?.stop();
      await this.server.remove();
    }
  }

  /** Opens pages in tabs of their own. */
  async open(...urls: string[]): Promise<Page[]> {
    const opened: Page[] = [];
    for (const url of urls) {
      opened.push(await this.browser.openTab(url));
    }
    await this.inStep();
    return opened;
  }

  /**
   * Closes every tab but the settings page. The driver hears of a tab that a command opened a moment after the browser has it, and
   * of one whose page never comes not at all: the browser closes those, and says when none is left.
   */
  async closeOthers(): Promise<void> {
    await this.whole();
    const left = async () => {
      const others = this.browser.context.pages().filter((page) => page !== this.page);
      await Promise.all(others.map((page) => page.close({ runBeforeUnload: false })));
      return this.page.evaluate(async () => {
        const own = (await chrome.tabs.getCurrent())?.id;
        const rest = (await chrome.tabs.query({})).flatMap(({ id }) => (id === undefined || id === own ? [] : [id]));
        void chrome.tabs.remove(rest).catch(() => {});
        return rest.length;
      });
    };
    await expect.poll(left, soon).toBe(0);
    await this.inStep(again);
  }

  /** Starts again what a test that failed has ended. */
  async whole(): Promise<void> {
    await this.server.up();
    if (!this.browser.runs) {
      await this.restartBrowser();
    }
  }

  /** Closes the tabs of web pages, and no page of the extension. */
  async closeSites(): Promise<void> {
    const left = () =>
      this.page.evaluate(async () => {
        const ids = (await chrome.tabs.query({ url: "http://*/*" })).flatMap(({ id }) => id ?? []);
        void chrome.tabs.remove(ids).catch(() => {});
        return ids.length;
      });
    await expect.poll(left, soon).toBe(0);
  }

  /** Ends the browser, starts it again with its profile, and waits until it is connected. */
  async restartBrowser(): Promise<void> {
    await this.browser.down();
    await this.browser.up();
    this.page = await this.browser.open("options.html");
    await this.online();
  }

  /** Waits until the browser is connected, as it sees it and as the server does. */
  async online(): Promise<void> {
    // The page may not know yet that it is not.
    const known = async () =>
      (await this.api.devices.listDevices({})).devices.find(({ deviceId }) => deviceId === this.deviceId)?.online;
    await expect.poll(known, again).toBe(true);
    await this.page.waitForSelector('#state[data-state="online"]', { timeout: again.timeout });
  }

  /** Turns the switch on the settings page, and waits until that holds. */
  async pause(paused: boolean): Promise<void> {
    await this.page.waitForSelector("#paused:enabled");
    if ((await this.page.isChecked("#paused")) !== paused) {
      await this.page.click("#paused");
      await this.page.waitForSelector(paused ? "#paused:checked" : "#paused:not(:checked)");
    }
  }

  /** What the extension's icon shows. */
  badge(): Promise<{ readonly text: string; readonly title: string }> {
    return this.page.evaluate(async () => ({
      text: await chrome.action.getBadgeText({}),
      title: await chrome.action.getTitle({}),
    }));
  }

  async realCount(url: string): Promise<number> {
    return (await this.realTabs()).filter((tab) => tab.url === url).length;
  }

  realTabs(): Promise<RealTab[]> {
    return this.browser.tabs(this.page);
  }

  async serverTabs(): Promise<Tab[]> {
    return (await this.api.browser.listTabs({ deviceId: this.deviceId, pageSize: 1000 })).tabs;
  }

  /** Waits until the server knows every tab as the browser has it. */
  async inStep(within = soon): Promise<void> {
    const difference = async () => {
      const [server, real] = await Promise.all([this.serverTabs(), this.realTabs()]);
      const known = server.map(seenTab).sort(byPlace);
      const is = real.map(seen).sort(byPlace);
      return JSON.stringify(known) === JSON.stringify(is)
        ? undefined
        : `known ${JSON.stringify(known)}, is ${JSON.stringify(is)}`;
    };
    await expect.poll(difference, within).toBeUndefined();
  }

  /** The composite id of a tab, by its address. */
  async idOf(url: string): Promise<string> {
    let id = "";
    const known = async () => {
      const tabs = await this.serverTabs();
      id = tabs.find((each) => each.url === url)?.tabId ?? "";
      return tabs.map((each) => each.url);
    };
    await expect.poll(known, soon).toContain(url);
    return id;
  }

  async realTab(id: string): Promise<RealTab | undefined> {
    const native = Number(id.slice(id.lastIndexOf("-") + 1));
    return (await this.realTabs()).find((tab) => tab.id === native);
  }

  async dispatch(kind: Kind, ttlSeconds?: number): Promise<DeviceOutcome> {
    const ttl = ttlSeconds === undefined ? {} : { ttl: { seconds: BigInt(ttlSeconds) } };
    const { outcomes } = await this.api.commands.dispatch({ deviceIds: [this.deviceId], action: { kind }, ...ttl });
    const [outcome] = outcomes;
    if (outcome === undefined || outcomes.length !== 1) {
      throw new Error(`${outcomes.length} outcomes`);
    }
    return outcome;
  }

  /** Runs a command that has to succeed, and returns its result. */
  async run<C extends Case>(kind: Extract<Kind, { case: C }>, ttlSeconds?: number): Promise<ResultOf<C>> {
    return resultOf(await this.dispatch(kind, ttlSeconds));
  }

  /** Runs a command that has to fail, and returns its error. */
  async fail(kind: Kind, ttlSeconds?: number): Promise<CommandError> {
    const { outcome } = await this.dispatch(kind, ttlSeconds);
    if (outcome.case !== "error") {
      throw new Error(`it did not fail: ${JSON.stringify(outcome.case)}`);
    }
    return outcome.value;
  }
}

export function resultOf<C extends Case>({ outcome }: DeviceOutcome): ResultOf<C> {
  if (outcome.case !== "result") {
    throw new Error(`it failed: ${outcome.case === "error" ? outcome.value.message : outcome.case}`);
  }
  return (outcome.value as Result).kind.value as ResultOf<C>;
}

/** Items in short: id and status. */
export function statuses(items: readonly ItemOutcome[]): string[] {
  return items.map(({ id, status }) => `${id} ${ItemStatus[status]}`);
}

const seen = ({ id, windowId, index, groupId, url, title, active, pinned, muted, discarded }: RealTab) => ({
  id,
  windowId,
  groupId,
  index,
  url,
  title,
  active,
  pinned,
  muted,
  discarded,
});

const native = (id: string) => Number(id.slice(id.lastIndexOf("-") + 1));

const seenTab = (tab: Tab) =>
  seen({
    ...tab,
    id: native(tab.tabId),
    windowId: native(tab.windowId),
    groupId: tab.groupId === "" ? -1 : native(tab.groupId),
  });

const byPlace = (a: { windowId: number; index: number }, b: { windowId: number; index: number }) =>
  a.windowId - b.windowId || a.index - b.index;
