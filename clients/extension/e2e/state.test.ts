/** What the server knows of a real browser: all of it, as it is, and nothing that a person keeps to themself. */
import { ErrorCode } from "@throwbar/es/pb/command";
import { ItemStatus, type TabGroup, type Window } from "@throwbar/es/pb/state";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { again, Fixture, soon, statuses } from "./harness/fixture.js";

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

const native = (id: string) => Number(id.slice(id.lastIndexOf("-") + 1));

const windows = async (): Promise<Window[]> => (await f.api.browser.listWindows({ deviceId: f.deviceId })).windows;

const groups = async (): Promise<TabGroup[]> => (await f.api.browser.listTabGroups({ deviceId: f.deviceId })).groups;

/** Opens empty tabs in the background, in a window of their own. */
async function fill(page: Page, count: number): Promise<number> {
  return page.evaluate(async (n) => {
    const window = await chrome.windows.create({ url: "about:blank", focused: false });
    const windowId = window?.id ?? 0;
    for (let at = 1; at < n; at++) {
      await chrome.tabs.create({ windowId, url: `about:blank?${at}`, active: false });
    }
    return windowId;
  }, count);
}

test("tabs keep their places while others open, close, move, are pinned, grouped and taken to another window", async () => {
  const windowId = await fill(f.page, 12);
  await f.inStep();
  await f.page.evaluate(async (id) => {
    const ids = (await chrome.tabs.query({ windowId: id })).map((tab) => tab.id ?? 0);
    const [a = 0, b = 0, c = 0, d = 0, e = 0, g = 0] = ids;
    await chrome.tabs.remove([a, c]);
    await chrome.tabs.move(b, { index: -1 });
    await chrome.tabs.update(d, { pinned: true });
    const group = await chrome.tabs.group({ tabIds: [e, ids[10] ?? 0] });
    await chrome.tabGroups.move(group, { index: 1 });
    await chrome.windows.create({ tabId: g, focused: false });
    await chrome.tabs.create({ windowId: id, index: 1, url: "about:blank?new", active: false });
  }, windowId);
  await f.inStep();
});

test("windows have their kind and the focus, groups their window, name, colour and fold", async () => {
  const made = await f.page.evaluate(async () => {
    const popup = await chrome.windows.create({ url: "about:blank", type: "popup" });
    const other = await chrome.windows.create({ url: ["about:blank?1", "about:blank?2"] });
    const [first] = other?.tabs ?? [];
    const group = await chrome.tabs.group({
      tabIds: [first?.id ?? 0],
      createProperties: { windowId: other?.id ?? 0 },
    });
    await chrome.tabGroups.update(group, { title: "Work", color: "cyan", collapsed: true });
    return { popup: popup?.id ?? 0, other: other?.id ?? 0, group };
  });
  const real = () =>
    f.page.evaluate(async () =>
      (await chrome.windows.getAll()).map(({ id, type, focused, state }) => `${id} ${type} ${focused} ${state}`).sort(),
    );
  const known = async () =>
    (await windows())
      .map(({ windowId, kind, focused, state }) => `${native(windowId)} ${kind} ${focused} ${state}`)
      .sort();
  // Either side may move while the other is read: the focus comes a moment after what it is asked for.
  const windowsAgree = () =>
    expect.poll(async () => [await known(), await real()], soon).toSatisfy(([a, b]) => `${a}` === `${b}`);
  await windowsAgree();
  expect((await windows()).find(({ windowId }) => native(windowId) === made.popup)?.kind).toBe("popup");
  const group = async () =>
    (await groups()).map((each) => [native(each.groupId), native(each.windowId), each.title, each.collapsed]);
  await expect.poll(group, soon).toEqual([[made.group, made.other, "Work", true]]);
  await f.page.evaluate((id) => chrome.windows.update(id, { focused: true }), made.popup);
  await windowsAgree();
  // A group that goes to another window takes its tabs along.
  const [main] = await f.page.evaluate(async () => [(await chrome.tabs.getCurrent())?.windowId ?? 0]);
  const realGroup = () =>
    f.page.evaluate(async (id) => {
      const { windowId, title, collapsed } = await chrome.tabGroups.get(id);
      return [[id, windowId, title, collapsed]];
    }, made.group);
  await f.page.evaluate(([id, windowId]) => chrome.tabGroups.move(id, { windowId, index: -1 }), [
    made.group,
    main ?? 0,
  ] as const);
  await expect.poll(async () => (await group())[0]?.[1], soon).toBe(main);
  await expect
    .poll(async () => [await group(), await realGroup()], soon)
    .toSatisfy(([a, b]) => JSON.stringify(a) === JSON.stringify(b));
  await f.inStep();
  for (const collapsed of [true, false]) {
    await f.page.evaluate(([id, to]) => chrome.tabGroups.update(id, { collapsed: to }), [
      made.group,
      collapsed,
    ] as const);
    await expect.poll(group, soon).toEqual([[made.group, main, "Work", collapsed]]);
  }
  await f.page.evaluate(async (groupId) => {
    await chrome.tabs.remove((await chrome.tabs.query({ groupId })).map((tab) => tab.id ?? 0));
  }, made.group);
  await expect.poll(groups, soon).toEqual([]);
});

test("tabs that sleep are listed and none is woken; one that fell asleep is known by its old id still", async () => {
  const [page] = await f.open("http://asleep.test/");
  expect(page).toBeDefined();
  const old = await f.idOf("http://asleep.test/");
  const windowId = await fill(f.page, 6);
  const loading = () => f.page.evaluate(async () => (await chrome.tabs.query({ status: "loading" })).length);
  await expect.poll(loading, soon).toBe(0);
  const sleepers = () => f.page.evaluate(async () => (await chrome.tabs.query({ discarded: true })).length);
  const now = await f.page.evaluate(
    async ([id, other]) => {
      for (const tab of await chrome.tabs.query({ windowId: other, active: false })) {
        await chrome.tabs.discard(tab.id);
      }
      await chrome.tabs.update((await chrome.tabs.getCurrent())?.id ?? 0, { active: true });
      return (await chrome.tabs.discard(id))?.id ?? 0;
    },
    [native(old), windowId] as const,
  );
  expect(now).not.toBe(native(old));
  await f.inStep();
  const asleep = await sleepers();
  expect(asleep).toBe(6);
  const hits = f.pages.hits.get("http://asleep.test/");
  for (let n = 0; n < 5; n++) {
    const tabs = await f.serverTabs();
    expect(tabs.filter(({ discarded }) => discarded)).toHaveLength(asleep);
    await f.api.browser.searchTabs({ query: "asleep" });
  }
  // Not by a reading of everything either, with which a new worker begins.
  await f.browser.killWorker(f.page);
  await f.page.evaluate(() => chrome.tabs.create({ url: "about:blank?after", active: false }));
  await f.inStep();
  expect(await sleepers()).toBe(asleep);
  expect(f.pages.hits.get("http://asleep.test/")).toBe(hits);
  const { items } = await f.run({ case: "closeTabs", value: { tabIds: [old] } });
  expect(statuses(items)).toEqual([`${old} OK`]);
  expect(await f.realTab(old.replace(String(native(old)), String(now)))).toBeUndefined();
});

test("a tab carries where it goes, and what it shows if it does not get there", async () => {
  f.pages.waiting.length = 0;
  const id = await f.page.evaluate(
    async () => (await chrome.tabs.create({ url: "http://wait.test/never", active: false })).id ?? 0,
  );
  const url = async () => (await f.serverTabs()).find((tab) => native(tab.tabId) === id)?.url;
  await expect.poll(url, soon).toBe("http://wait.test/never");
  await expect.poll(() => f.pages.waiting.length, soon).toBe(1);
  f.pages.waiting.splice(0).forEach((response) => {
    response.statusCode = 204;
    response.end();
  });
  await expect
    .poll(() => f.page.evaluate(async (tab) => (await chrome.tabs.get(tab)).pendingUrl, id), soon)
    .toBeUndefined();
  await expect.poll(url, soon).not.toBe("http://wait.test/never");
  await f.inStep();
});

test("a password in an address stays in the browser; an address that does not fit says that it was cut", async () => {
  await f.page.evaluate(async () => {
    await chrome.tabs.create({ url: "http://me:secret@login.test/in", active: false });
    await chrome.tabs.create({ url: `data:text/html,${"x".repeat(2_000_000)}`, active: false });
  });
  const known = async () =>
    (await f.serverTabs())
      .map((tab) => tab.url)
      .filter((each) => /login|^data:/.test(each))
      .sort();
  await expect.poll(async () => (await known()).length, soon).toBe(2);
  const [data = "", login] = await known();
  expect(login).toBe("http://login.test/in");
  expect(data).toMatch(/^data:text\/html,x{900,1010}…$/);
  const said = JSON.stringify(await f.serverTabs());
  expect(said).not.toContain("secret");
});

test("a page that changes its title with each frame is told of a few times, and its last title is known", async () => {
  const reports = async () => {
    const calls = await f.server.metrics("throwbar_calls_total");
    return [...calls].filter(([labels]) => labels.includes("Report")).reduce((sum, [, count]) => sum + count, 0);
  };
  const before = await reports();
  await f.browser.openTab("http://restless.test/restless");
  const title = async () => (await f.serverTabs()).find((tab) => tab.url.includes("restless"))?.title;
  await expect.poll(title, again).toBe("Done");
  expect((await reports()) - before).toBeGreaterThan(0);
  // Two seconds of frames, and what else the link reports meanwhile.
  expect((await reports()) - before).toBeLessThan(25);
});

test("private windows stay unknown until a person says otherwise, and are again when that is taken back", async () => {
  await allowPrivate();
  await f.page.uncheck("#private");
  const made = await f.page.evaluate(async () => {
    const window = await chrome.windows.create({ url: "http://private.test/", incognito: true });
    const tabId = window?.tabs?.[0]?.id ?? 0;
    await chrome.tabs.group({ tabIds: [tabId], createProperties: { windowId: window?.id ?? 0 } });
    return { windowId: window?.id ?? 0, tabId };
  });
  // Known as soon as something that came later is.
  await f.page.evaluate(() => chrome.tabs.create({ url: "about:blank?public", active: false }));
  await expect.poll(async () => (await f.serverTabs()).some((tab) => tab.url.endsWith("?public")), soon).toBe(true);
  const shown = async () => [
    ...(await f.serverTabs()).filter((tab) => tab.private || tab.url.includes("private.test")),
    ...(await windows()).filter((window) => window.private || native(window.windowId) === made.windowId),
    ...(await groups()),
  ];
  expect(await shown()).toEqual([]);
  const some = (await f.serverTabs())[0]?.tabId ?? "";
  const id = some.replace(/-\d+$/, `-${made.tabId}`);
  const tabThere = () =>
    f.page.evaluate(
      (tab) =>
        chrome.tabs.get(tab).then(
          () => true,
          () => false,
        ),
      made.tabId,
    );
  await untouched(id);
  expect(await tabThere()).toBe(true);

  await f.page.click("#private");
  await expect.poll(async () => (await f.serverTabs()).find((tab) => tab.tabId === id)?.private, soon).toBe(true);
  await expect
    .poll(async () => (await windows()).find((window) => native(window.windowId) === made.windowId)?.private, soon)
    .toBe(true);
  const { items } = await f.run({ case: "muteTabs", value: { tabIds: [id], muted: true } });
  expect(items.map(({ status }) => status)).toEqual([ItemStatus.OK]);

  await f.page.click("#private");
  await expect.poll(shown, soon).toEqual([]);
  await untouched(id);
  expect(await tabThere()).toBe(true);
});

/** No command finds the private tab. */
async function untouched(id: string): Promise<void> {
  for (const kind of [
    { case: "navigateTab", value: { tabId: id, url: "elsewhere.test" } },
    { case: "activateTab", value: { tabId: id } },
  ] as const) {
    expect(await f.fail(kind)).toMatchObject({ code: ErrorCode.NOT_FOUND });
  }
  const tabIds = [id];
  for (const { items } of [
    await f.run({ case: "closeTabs", value: { tabIds } }),
    await f.run({ case: "reloadTabs", value: { tabIds } }),
    await f.run({ case: "saveTabs", value: { tabIds, close: true } }),
  ]) {
    expect(items.map(({ status }) => status)).toEqual([ItemStatus.NOT_FOUND]);
  }
  expect(await f.run({ case: "closeTabsByUrl", value: { url: "*private.test*" } })).toMatchObject({ closedCount: 0 });
}

/** What a person does on the browser's page of extensions; it holds from the next start on. */
async function allowPrivate(): Promise<void> {
  const page = await f.browser.context.newPage();
  await page.goto("chrome://extensions/");
  await page.evaluate(
    async (extensionId) => {
      type Own = { updateExtensionConfiguration(to: { extensionId: string; incognitoAccess: boolean }): Promise<void> };
      const { developerPrivate } = chrome as unknown as { developerPrivate: Own };
      await developerPrivate.updateExtensionConfiguration({ extensionId, incognitoAccess: true });
    },
    await f.page.evaluate(() => chrome.runtime.id),
  );
  await f.restartBrowser();
  expect(await f.page.evaluate(() => chrome.extension.isAllowedIncognitoAccess())).toBe(true);
}
