/**
 * The same extension in a real Firefox. FIREFOX names its program; without it these are left out, because Firefox is no
 * part of what a machine for `make test` has: `make test-firefox` installs Debian's and runs them.
 *
 * THROWBAR_SOAK_SECONDS=600 also watches one link for so long, with Firefox's own limit for idle event pages.
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Code } from "@connectrpc/connect";
import type { Case, ResultOf } from "@throwbar/es/commands";
import { ErrorCode } from "@throwbar/es/pb/command";
import { DeviceChange } from "@throwbar/es/pb/commands";
import { ItemStatus } from "@throwbar/es/pb/state";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Firefox } from "./harness/firefox.js";
import { type Kind, resultOf, soon } from "./harness/fixture.js";
import { Pages } from "./harness/pages.js";
import { type Api, Server } from "./harness/server.js";

const program = process.env.FIREFOX ?? "";
const soakSeconds = Number(process.env.THROWBAR_SOAK_SECONDS ?? "0");
const root = fileURLToPath(new URL("..", import.meta.url));

describe.skipIf(program === "")("in Firefox (left out unless FIREFOX names its program)", () => {
  let folder: string;
  let server: Server;
  let pages: Pages;
  let firefox: Firefox;
  let api: Api;
  let deviceId: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "throwbar-firefox-build-"));
    const built = spawnSync(process.execPath, ["scripts/build.mjs", "firefox"], {
      cwd: root,
      env: { ...process.env, THROWBAR_EXTENSION_OUT: folder },
      encoding: "utf8",
    });
    expect(built.status, built.stderr).toBe(0);
    server = await Server.start();
    pages = await Pages.start();
    api = await server.api();
    // Nobody is there to answer Firefox's question, so that it grants what it is asked for. Without a click it is not asked.
    firefox = await Firefox.start(program, folder, { "extensions.webextOptionalPermissionPrompts": false });
  });

  afterAll(async () => {
    await firefox?.stop();
    await pages?.stop();
    await server?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  const page = (name: string) => `http://127.0.0.1:${pages.port}/${name}`;
  const known = async () => (await api.browser.listTabs({ deviceId, pageSize: 100 })).tabs;
  const idOf = async (url: string) => (await known()).find((tab) => tab.url === url)?.tabId ?? `no tab at ${url}`;
  const onPages = (urls: readonly string[]) => urls.filter((url) => url.startsWith(page(""))).sort();

  async function dispatch(kind: Kind, seconds = 30) {
    const { outcomes } = await api.commands.dispatch({
      deviceIds: [deviceId],
      action: { kind },
      ttl: { seconds: BigInt(seconds) },
    });
    return outcomes[0];
  }

  async function run<C extends Case>(kind: Extract<Kind, { case: C }>, seconds?: number): Promise<ResultOf<C>> {
    const outcome = await dispatch(kind, seconds);
    if (outcome === undefined) {
      throw new Error("no outcome");
    }
    return resultOf<C>(outcome);
  }

  /** Opens a tab and waits until the server knows its page. */
  async function open(name: string): Promise<string> {
    const { tabId } = await run<"openTab">({ case: "openTab", value: { url: page(name) } });
    await expect.poll(() => idOf(page(name)), soon).toBe(tabId);
    return tabId;
  }

  /** Waits until the server has the tabs that Firefox's windows have. */
  async function inStep(): Promise<void> {
    await expect
      .poll(async () => {
        const [server, real] = await Promise.all([known(), firefox.addresses()]);
        return [server.map(({ url }) => url).sort(), real.sort()];
      }, soon)
      .toSatisfy((both: string[][]) => JSON.stringify(both[0]) === JSON.stringify(both[1]));
  }

  const online = () =>
    expect
      .poll(async () => (await api.devices.listDevices({ onlineOnly: true })).devices.map((each) => each.deviceId), {
        timeout: 40_000,
        interval: 50,
      })
      .toEqual([deviceId]);

  test("starts its event page, shows its settings once, and has what the manifest asks for", async () => {
    await expect.poll(() => firefox.background(), soon).toBe("running");
    await expect.poll(() => firefox.addresses(), soon).toEqual([expect.stringMatching(/\/options\.html$/)]);
    expect(await firefox.complaints()).toEqual([]);
    expect(await firefox.hosts()).toEqual(expect.arrayContaining(["http://127.0.0.1/*", "http://localhost/*"]));
  });

  test("pairs by a click on the settings page, which also asks for the access that was taken back", async () => {
    await firefox.refuse("http://127.0.0.1/*", "http://localhost/*");
    expect(await firefox.hosts()).toEqual([]);
    const { code, checkWord } = await api.devices.createPairingCode({});
    await firefox.open("options.html");
    await firefox.fill("#server", server.url);
    await firefox.fill("#code", code.toLowerCase());
    await firefox.fill("#name", "fox");
    await firefox.click("#pair-button");
    await expect.poll(() => firefox.text("#check-word"), soon).toBe(checkWord);
    await expect.poll(() => firefox.text("#state"), soon).toBe("Connected.");
    expect(await firefox.hosts()).toEqual(["http://127.0.0.1/*"]);
    const { devices } = await api.devices.listDevices({ onlineOnly: true });
    expect(devices).toMatchObject([{ name: "fox", agent: expect.stringMatching(/^Firefox \d+$/), platform: "linux" }]);
    deviceId = devices[0]?.deviceId ?? "";
    await inStep();
  });

  test("opens, lists, shows, sends elsewhere, reloads and closes tabs", async () => {
    const [a, b] = [await open("a"), await open("b")];
    await inStep();
    expect((await known()).find(({ tabId }) => tabId === b)).toMatchObject({ active: true });
    await run({ case: "activateTab", value: { tabId: a } });
    await expect.poll(() => firefox.inFront(), soon).toBe(page("a"));
    expect(await run<"getActiveTab">({ case: "getActiveTab", value: {} })).toMatchObject({ tabId: a });
    await run({ case: "navigateTab", value: { tabId: b, url: page("c") } });
    await expect.poll(() => idOf(page("c")), soon).toBe(b);
    const hits = pages.hits.get(page("c")) ?? 0;
    expect(await run<"reloadTabs">({ case: "reloadTabs", value: { tabIds: [b] } })).toMatchObject({ reloadedCount: 1 });
    await expect.poll(() => pages.hits.get(page("c")), soon).toBe(hits + 1);
    const closed = await run<"closeTabs">({ case: "closeTabs", value: { tabIds: [a, b] } });
    expect(closed).toMatchObject({ closedCount: 2, items: [{ status: ItemStatus.OK }, { status: ItemStatus.OK }] });
    expect(onPages(await firefox.addresses())).toEqual([]);
    await inStep();
  });

  test("closes what there is around a tab that is gone", async () => {
    const [a, gone, b] = [await open("a"), await open("gone"), await open("b")];
    await firefox.close(page("gone"));
    const closed = await run<"closeTabs">({ case: "closeTabs", value: { tabIds: [a, gone, b] } });
    expect(closed.items.map(({ status }) => status)).toEqual([ItemStatus.OK, ItemStatus.NOT_FOUND, ItemStatus.OK]);
    expect(onPages(await firefox.addresses())).toEqual([]);
  });

  test("a page that asks before it is left keeps what a person typed", async () => {
    const [guarded, plain] = [await open("guard"), await open("plain")];
    await run({ case: "activateTab", value: { tabId: guarded } });
    await firefox.typeInto(page("guard"), "input", "not saved yet");
    const closed = await run<"closeTabs">({ case: "closeTabs", value: { tabIds: [guarded, plain] } }, 8);
    expect(closed.items.map(({ status }) => status)).toEqual([ItemStatus.BLOCKED_BY_PAGE, ItemStatus.OK]);
    expect(await idOf(page("guard"))).toBe(guarded);
    await firefox.leavePage();
    await expect.poll(async () => onPages((await known()).map(({ url }) => url)), soon).toEqual([]);
    await inStep();
  });

  test("pins, mutes, groups, moves, saves and restores", async () => {
    const tabIds = [await open("a"), await open("b")];
    const yes = { case: "pinTabs", value: { tabIds, pinned: true } } as const;
    expect(await run<"pinTabs">(yes)).toMatchObject({ pinnedCount: 2 });
    expect(await run<"pinTabs">({ case: "pinTabs", value: { tabIds, pinned: false } })).toMatchObject({
      pinnedCount: 2,
    });
    expect(await run<"muteTabs">({ case: "muteTabs", value: { tabIds, muted: true } })).toMatchObject({
      mutedCount: 2,
    });
    const grouped = await run<"groupTabs">({ case: "groupTabs", value: { tabIds, title: "Read" } });
    expect(grouped).toMatchObject({ groupedCount: 2 });
    await expect
      .poll(async () => (await api.browser.listTabGroups({ deviceId })).groups, soon)
      .toMatchObject([{ groupId: grouped.groupId, title: "Read" }]);
    expect(await run<"ungroupTabs">({ case: "ungroupTabs", value: { tabIds } })).toMatchObject({ ungroupedCount: 2 });
    expect(await run<"moveTabs">({ case: "moveTabs", value: { tabIds: tabIds.slice(1), index: 0 } })).toMatchObject({
      movedCount: 1,
    });
    await expect.poll(async () => (await firefox.addresses())[0], soon).toBe(page("b"));
    const saved = await run<"saveTabs">({ case: "saveTabs", value: { tabIds, close: true } });
    expect(saved.items.map(({ status }) => status)).toEqual([ItemStatus.OK, ItemStatus.OK]);
    expect(onPages(await firefox.addresses())).toEqual([]);
    const { savedTabs } = await api.browser.listSavedTabs({});
    const savedIds = savedTabs.map(({ savedId }) => savedId);
    expect(await run<"restoreTabs">({ case: "restoreTabs", value: { savedIds } })).toMatchObject({ restoredCount: 2 });
    await expect.poll(async () => onPages(await firefox.addresses()), soon).toEqual([page("a"), page("b")]);
  });

  test("refuses what Firefox would not open", async () => {
    const outcome = await dispatch({ case: "openTab", value: { url: "about:config" } });
    expect(outcome?.outcome).toMatchObject({ case: "error", value: { code: ErrorCode.REFUSED } });
  });

  test("an event page that was put away is back with the next event, and the state is whole", async () => {
    expect(await firefox.suspend()).toMatch(/^stopped|^starting/);
    await firefox.openTab(page("woken"));
    await online();
    await expect.poll(() => firefox.background(), soon).toBe("running");
    await inStep();
    expect(await run<"closeTabsByUrl">({ case: "closeTabsByUrl", value: { url: page("woken") } })).toMatchObject({
      closedCount: 1,
    });
  });

  test("and with the alarm where there is no event", async () => {
    expect(await firefox.suspend()).toMatch(/^stopped|^starting/);
    await online();
    await expect.poll(() => firefox.background(), { timeout: 40_000, interval: 50 }).toBe("running");
    await inStep();
    expect((await run<"getActiveTab">({ case: "getActiveTab", value: {} })).url).toBe(await firefox.inFront());
  });

  test("the sidebar shows the panel", async () => {
    await firefox.open("panel.html");
    await expect.poll(() => firefox.text("body"), soon).toMatch(/\S/);
    expect(await firefox.sidebar()).toMatch(/panel\.html$/);
  });

  test.skipIf(soakSeconds === 0)(
    "one link stays up (left out unless THROWBAR_SOAK_SECONDS says how long)",
    async () => {
      const seen: string[] = [];
      const events = api.commands.watchEvents({ deviceId }, { timeoutMs: soakSeconds * 1000 });
      await expect(
        (async () => {
          for await (const { event } of events) {
            if (event?.kind.case === "device") {
              seen.push(DeviceChange[event.kind.value.change]);
            }
          }
        })(),
      ).rejects.toMatchObject({ code: Code.DeadlineExceeded });
      expect(seen).toEqual([]);
      expect(await firefox.background()).toBe("running");
    },
    (soakSeconds + 60) * 1000,
  );
});
