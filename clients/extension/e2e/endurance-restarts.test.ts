/**
 * Servers and browsers that are started again and again, and documents of the link that go: there is one stream at a time,
 * what is told of the state is told once and in order, no tab is lost, and a close from before all of it can be undone.
 * THROWBAR_ENDURANCE=1 makes it 20 servers and 5 browsers.
 */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { extensionId } from "./harness/browser.js";
import { spread, table } from "./harness/figures.js";
import { again, Fixture, soon } from "./harness/fixture.js";
import { deltaFaults, type Tap } from "./harness/tap.js";

const long = process.env.THROWBAR_ENDURANCE !== undefined;
const servers = long ? 20 : 2;
const browsers = long ? 5 : 1;

let f: Fixture;
let tap: Tap;

beforeAll(async () => {
  f = await Fixture.start("endurance", {}, true);
  tap = f.tap as Tap;
});

afterAll(async () => {
  await f?.stop();
});

const sum = (metric: Map<string, number>) => [...metric.values()].reduce((a, b) => a + b, 0);

/** One link on the wire and at the server, in step with the browser, and nothing told twice. */
async function sound(): Promise<void> {
  await f.inStep();
  await expect.poll(() => tap.open, soon).toBe(1);
  expect(tap.mostOpen).toBe(1);
  await expect.poll(async () => sum(await f.server.metrics("throwbar_links")), soon).toBe(1);
  expect(tap.links.flatMap(deltaFaults)).toEqual([]);
}

const urlsOf = async () => (await f.serverTabs()).map(({ url }) => url);

test(
  "servers and browsers come and go",
  async () => {
    await f.closeOthers();
    const undone = ["http://undo.test/1", "http://undo.test/2"];
    await f.open(...undone);
    const closing = await f.dispatch({
      case: "closeTabs",
      value: { tabIds: [await f.idOf(undone[0] ?? ""), await f.idOf(undone[1] ?? "")] },
    });
    expect(closing.outcome.case).toBe("result");
    const back = { server: [] as number[], browser: [] as number[] };
    for (let n = 0; n < servers; n++) {
      const kept = `http://kept.test/${n}`;
      await f.run<"openTab">({ case: "openTab", value: { url: kept, active: false } });
      await f.server.down(n % 2 === 0 ? "SIGTERM" : "SIGKILL");
      const alone = await f.browser.openTab(`http://alone.test/${n}`);
      await f.server.up();
      const begun = performance.now();
      await f.online();
      back.server.push(performance.now() - begun);
      await sound();
      // A server that was started again has seen one link, however often the browser had to try.
      expect(sum(await f.server.metrics("throwbar_links_opened_total"))).toBe(1);
      expect(await urlsOf()).toEqual(expect.arrayContaining([kept, `http://alone.test/${n}`]));
      await alone.close();
      if ((n + 1) % Math.floor(servers / browsers) === 0) {
        const restarting = performance.now();
        await f.restartBrowser();
        back.browser.push(performance.now() - restarting);
        await sound();
      }
    }
    const { outcomes } = await f.api.commands.undo({ commandId: closing.commandId });
    expect(outcomes.map(({ outcome }) => outcome.case)).toEqual(["result"]);
    await f.inStep();
    expect((await urlsOf()).filter((url) => undone.includes(url)).sort()).toEqual(undone);
    table(`${servers} servers and ${back.browser.length} browsers`, {
      "links that stood": tap.links.filter(({ id }) => id !== "").length,
      "most streams at a time": tap.mostOpen,
      "connected after a server was up": spread(back.server).text,
      "connected after a browser was ended": spread(back.browser).text,
    });
  },
  long ? 900_000 : 240_000,
);

/** The processes of the extension's pages, its worker and its document: one, once the browser is at rest. */
function extensionProcesses(profile: string): number[] {
  const all = readdirSync("/proc").flatMap((name) => {
    try {
      // A process that was forked has its arguments in one piece.
      const args = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
      const parent = Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1]);
      return /^\d+$/.test(name) ? [{ pid: Number(name), parent, args }] : [];
    } catch {
      return []; // it has ended meanwhile, or is no process
    }
  });
  const own = new Set(all.flatMap(({ pid, args }) => (args.includes(`--user-data-dir=${profile} `) ? [pid] : [])));
  for (let before = 0; before !== own.size; ) {
    before = own.size;
    for (const { pid, parent } of all) {
      if (own.has(parent)) {
        own.add(pid);
      }
    }
  }
  return all.filter(({ pid, args }) => own.has(pid) && args.includes("--extension-process")).map(({ pid }) => pid);
}

const online = async () => (await f.api.devices.listDevices({})).devices[0]?.online;

test("a document of the link that is closed, twice at once, is opened again, once", async () => {
  const before = tap.links.length;
  const worker = await f.browser.worker();
  await worker.evaluate(() => chrome.offscreen.closeDocument());
  // Nobody may see the device offline in between: any event has the document opened again.
  await expect.poll(() => tap.links[before - 1]?.open, soon).toBe(false);
  await Promise.all([f.browser.openTab("http://a.test/"), f.browser.openTab("http://b.test/")]);
  await expect.poll(() => tap.links.length, again).toBe(before + 1);
  await expect.poll(online, again).toBe(true);
  await sound();
  expect(tap.links.length).toBe(before + 1);
});

test("an extension whose process is killed is known to be away at once, and is back when the browser is started again", async () => {
  const before = tap.links.length;
  await expect.poll(() => extensionProcesses(f.browser.profile).length, soon).toBe(1);
  process.kill(extensionProcesses(f.browser.profile)[0] ?? Number.NaN, "SIGKILL");
  await expect.poll(online, soon).toBe(false);
  // The browser takes the whole extension for crashed: nothing wakes it, and its pages do not open. It tells the person so.
  const page = await f.browser.openTab("http://c.test/");
  await expect(page.goto(`chrome-extension://${extensionId}/options.html`)).rejects.toThrow("ERR_BLOCKED_BY_CLIENT");
  expect(await online()).toBe(false);
  await f.restartBrowser();
  await sound();
  expect(tap.links.length).toBe(before + 1);
});
