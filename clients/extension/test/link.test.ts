/** How the link lives: what its status says, how it comes back after a sleep, and who may not have it. */
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorCode } from "@throwbar/es/pb/command";
import { EndReason } from "@throwbar/es/pb/device";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LinkStatus } from "../src/bridge/messages.js";
import { pairingKey, pausedKey } from "../src/bridge/settings.js";
import { watchSleep } from "../src/link/sleep.js";
import { FakeExtension, pairing } from "./fake/extension.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const soon = () => vi.advanceTimersByTimeAsync(30);
const statusOf = async (ext: FakeExtension) => (await ext.link.receive({ to: "link", kind: "status" })) as LinkStatus;
const gone = () => new ConnectError("gone", Code.Unavailable);

/** Lets both clocks and the timers go on. */
async function pass(ext: FakeExtension, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 500) {
    ext.clock.pass(Math.min(left, 500));
    await vi.advanceTimersByTimeAsync(Math.min(left, 500));
  }
}

test("connected: since when, and how long a heartbeat took to be answered", async () => {
  const ext = new FakeExtension();
  const report = ext.server.report.bind(ext.server);
  ext.server.report = async (request) => {
    ext.clock.pass(7);
    return report(request);
  };
  await ext.online();
  await soon();
  const status = await statusOf(ext);
  expect(status).toMatchObject({ state: "online", roundTripMs: 7, paused: false, server: pairing.server });
  ext.clock.pass(15_000);
  ext.server.link.send({ case: "heartbeat", value: { number: 1n } });
  await soon();
  expect((await statusOf(ext)).since).toBe(status.since);
  ext.server.link.fail();
  await soon();
  expect(await statusOf(ext)).not.toHaveProperty("roundTripMs");
});

test("a server that is away is waited for with a time, and called unreachable after half a minute", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.watchFailures.push(...Array.from({ length: 200 }, gone));
  ext.server.link.fail();
  await soon();
  const waiting = await statusOf(ext);
  expect(waiting.state).toBe("waiting");
  expect(waiting.retryAt).toBe(ext.clock.wall() + 500);
  await pass(ext, 29_000);
  expect(await statusOf(ext)).toMatchObject({ state: "waiting", since: waiting.since });
  await pass(ext, 3000);
  expect(await statusOf(ext)).toMatchObject({ state: "offline", detail: "The server cannot be reached." });
  ext.server.watchFailures.length = 0;
  await pass(ext, 1000);
  ext.server.link.welcome();
  await soon();
  expect((await statusOf(ext)).state).toBe("online");
  expect(ext.badges.map(({ text }) => text).slice(-3)).toEqual(["…", "off", ""]);
});

test("an attempt that fails again is no news for the icon", async () => {
  const ext = new FakeExtension();
  await ext.online();
  let news = 0;
  ext.onAsked = (kind) => {
    news += kind === "status" ? 1 : 0;
  };
  ext.server.watchFailures.push(...Array.from({ length: 20 }, gone));
  ext.server.link.fail();
  await pass(ext, 5000);
  expect(news).toBe(1);
  expect(ext.server.watchFailures.length).toBeLessThan(15);
});

test("pages hear of round trips and of the next attempt without the worker", async () => {
  const ext = new FakeExtension();
  await ext.online();
  const shown = ext.badges.length;
  const told = ext.told().length;
  ext.server.link.send({ case: "heartbeat", value: { number: 1n } });
  await soon();
  expect(ext.told().length).toBeGreaterThan(told);
  expect(ext.badges).toHaveLength(shown);
});

test("a new start that is asked for in the middle of anything is made, and no link is forgotten", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.link.send({ case: "end", value: { reason: EndReason.REPLACED } });
  // At every moment of what follows.
  for (let ms = 0; ms < 5; ms++) {
    await vi.advanceTimersByTimeAsync(1);
    await ext.link.receive({ to: "link", kind: "restart" });
  }
  await vi.advanceTimersByTimeAsync(1000);
  const open = ext.server.links.filter(({ signal }) => !signal.aborted);
  expect(open).toEqual([ext.server.link]);
});

test("the machine slept while the link waited: the wait is over", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.link.send({ case: "end", value: { reason: EndReason.BUSY, retryAfter: { seconds: 20n } } });
  await pass(ext, 5000);
  expect(ext.server.links).toHaveLength(1);
  ext.link.awake(10_000);
  await soon();
  expect(ext.server.links).toHaveLength(2);
});

test("a short sleep: the link is asked, and stays if it is there", async () => {
  const ext = new FakeExtension();
  await ext.online();
  const beats = ext.server.link.of("heartbeat").length;
  ext.link.awake(20_000);
  await pass(ext, 10_000);
  expect(ext.server.link.of("heartbeat")).toHaveLength(beats + 1);
  expect(ext.server.links).toHaveLength(1);
});

test("a short sleep after which nobody answers: there is another link in seconds, not in half a minute", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.report = () => new Promise(() => {});
  ext.link.awake(20_000);
  await pass(ext, 2500);
  expect(ext.server.links).toHaveLength(1);
  await pass(ext, 1000);
  expect(ext.server.links).toHaveLength(2);
  expect(ext.server.links[0]?.signal.aborted).toBe(true);
});

test("a sleep that is longer than the server waits: another link at once", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.link.awake(3_600_000);
  await soon();
  expect(ext.server.links).toHaveLength(2);
  expect(ext.server.links[0]?.signal.aborted).toBe(true);
});

test.each(["both clocks", "the wall clock only", "the even clock only"])("a sleep shows on %s", async (which) => {
  const ext = new FakeExtension();
  const slept: number[] = [];
  const stop = watchSleep(ext.clock, (ms) => slept.push(ms));
  await pass(ext, 60_000);
  expect(slept).toEqual([]);
  ext.clock.now += which === "the wall clock only" ? 0 : 3_600_000;
  ext.clock.date += which === "the even clock only" ? 0 : 3_600_000;
  await pass(ext, 60_000);
  expect(slept).toEqual([3_605_000]);
  stop();
  ext.clock.pass(3_600_000);
  await pass(ext, 60_000);
  expect(slept).toHaveLength(1);
});

test("who was replaced stays away in every worker and every document, until a person asks or the browser ends", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.link.send({ case: "end", value: { reason: EndReason.REPLACED } });
  await soon();
  ext.killWorker();
  ext.newLink();
  ext.link.start();
  await pass(ext, 120_000);
  expect(ext.server.links).toHaveLength(1);
  expect((await statusOf(ext)).state).toBe("replaced");
  expect(ext.badges.at(-1)?.text).toBe("!");
  await ext.link.receive({ to: "link", kind: "restart" });
  await soon();
  expect(ext.server.links).toHaveLength(2);
  ext.server.link.send({ case: "end", value: { reason: EndReason.REPLACED } });
  await soon();
  ext.restartBrowser();
  ext.newLink();
  ext.link.start();
  await soon();
  expect(ext.server.links).toHaveLength(3);
});

test("revoked is said until the browser is paired again", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.link.send({ case: "end", value: { reason: EndReason.REVOKED } });
  await pass(ext, 60_000);
  expect(ext.storage.local.items.has(pairingKey)).toBe(false);
  expect(await statusOf(ext)).toMatchObject({ state: "revoked" });
  await ext.storage.local.set({ [pairingKey]: { ...pairing, deviceId: "dev2" } });
  await soon();
  expect(ext.server.links).toHaveLength(2);
});

test("a name that the server has given is kept, and costs no link", async () => {
  const ext = new FakeExtension();
  ext.link.start();
  await soon();
  ext.server.link.welcome({ name: "study" });
  await soon();
  expect(JSON.parse(ext.storage.local.items.get(pairingKey) ?? "")).toEqual({ ...pairing, name: "study" });
  expect((await statusOf(ext)).name).toBe("study");
  expect(ext.server.links).toHaveLength(1);
});

test("paired anew while it runs, it tells the state in its new ids, and nothing of what it did before", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  await ext.outcome("c1");
  await ext.storage.local.set({ [pairingKey]: { ...pairing, deviceId: "dev2", server: "http://127.0.0.1:4000" } });
  await soon();
  expect(ext.server.links).toHaveLength(2);
  expect(ext.server.link.hello.outcomes).toEqual([]);
  ext.server.link.welcome();
  await soon();
  const tabs = ext.server.link.of("snapshot").flatMap((snapshot) => snapshot.tabs);
  expect(tabs).toHaveLength(3);
  expect(tabs.every(({ tabId }) => tabId.startsWith("dev2_"))).toBe(true);
});

test("a state that the server does not take is asked for anew, for the next link", async () => {
  const ext = new FakeExtension();
  await ext.online();
  let asked = 0;
  ext.onAsked = (kind) => {
    asked += kind === "state" ? 1 : 0;
  };
  ext.server.reportFailures.push(new ConnectError("no tab of this device", Code.InvalidArgument));
  ext.server.link.send({ case: "resync", value: { reason: "gap" } });
  await pass(ext, 1000);
  expect(ext.server.links).toHaveLength(2);
  ext.server.link.welcome();
  await soon();
  expect(asked).toBe(1);
  expect(ext.server.link.of("snapshot").flatMap(({ tabs }) => tabs)).toHaveLength(2);
});

test("paused: Hello says so, commands are refused and not begun, and the icon shows it, also in the next worker", async () => {
  const ext = new FakeExtension();
  await ext.online();
  expect(ext.server.link.hello.paused).toBe(false);
  expect(await ext.say({ to: "worker", kind: "pause", paused: true })).toBe(true);
  await soon();
  expect(ext.server.link.of("condition")).toMatchObject([{ paused: true }]);
  expect(ext.badges.at(-1)?.text).toBe("❚❚");
  for (const id of ["c1", "c2"]) {
    ext.command(id, { case: "openTab", value: { url: "new.test" } });
    expect((await ext.outcome(id)).outcome.value).toMatchObject({ code: ErrorCode.REFUSED });
    ext.killWorker();
  }
  expect(ext.browser.tabList).toHaveLength(2);
  ext.server.link.fail();
  await vi.advanceTimersByTimeAsync(1000);
  expect(ext.server.link.hello.paused).toBe(true);
  ext.server.link.welcome();
  await soon();
  expect(await ext.say({ to: "worker", kind: "pause", paused: false })).toBe(false);
  await soon();
  expect(ext.server.link.of("condition")).toMatchObject([{ paused: false }]);
  ext.command("c3", { case: "openTab", value: { url: "new.test" } });
  expect((await ext.outcome("c3")).outcome.case).toBe("result");
});

test("a pause between Hello and Welcome is told on the new link", async () => {
  const ext = new FakeExtension();
  ext.link.start();
  await soon();
  await ext.say({ to: "worker", kind: "pause", paused: true });
  ext.server.link.welcome();
  await soon();
  expect(ext.server.link.of("condition")).toMatchObject([{ paused: true }]);
  expect((await statusOf(ext)).paused).toBe(true);
});

test("a pause that comes while a command is written down is in time; what has begun is finished, and answers are given", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.command("before", { case: "openTab", value: { url: "before.test" } });
  await ext.outcome("before");
  const real = ext.browser.tabs.create;
  let finish: () => void = () => {};
  ext.browser.tabs.create = async (tab) => {
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    return real(tab);
  };
  ext.command("begun", { case: "openTab", value: { url: "begun.test" } });
  await soon();
  const set = ext.storage.local.set.bind(ext.storage.local);
  let pausing: Promise<unknown> | undefined;
  ext.storage.local.set = async (items) => {
    if (Object.keys(items)[0] === "journal/late") {
      // The command is being written down, as taken on or as begun.
      pausing ??= ext.say({ to: "worker", kind: "pause", paused: true });
    }
    await set(items);
  };
  ext.command("late", { case: "openTab", value: { url: "late.test" } });
  expect((await ext.outcome("late")).outcome.value).toMatchObject({ code: ErrorCode.REFUSED });
  await pausing;
  finish();
  expect((await ext.outcome("begun")).outcome.case).toBe("result");
  ext.command("before", { case: "openTab", value: { url: "before.test" } });
  await soon();
  const answers = ext.server.link.of("outcome").filter(({ commandId }) => commandId === "before");
  expect(answers.map(({ outcome }) => outcome.case)).toEqual(["result", "result"]);
  expect(ext.browser.tabList.map(({ url }) => url).slice(2)).toEqual(["https://before.test/", "https://begun.test/"]);
});

test("a pause that cannot be stored is refused, and one that cannot be read counts", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.storage.local.full = true;
  await expect(ext.say({ to: "worker", kind: "pause", paused: true })).rejects.toThrow("quota");
  ext.storage.local.full = false;
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  expect((await ext.outcome("c1")).outcome.case).toBe("result");
  const get = ext.storage.local.get.bind(ext.storage.local);
  ext.storage.local.get = async (keys) => {
    if (keys.includes(pausedKey)) {
      throw new Error("damaged");
    }
    return get(keys);
  };
  ext.killWorker();
  ext.command("c2", { case: "openTab", value: { url: "new.test" } });
  expect((await ext.outcome("c2")).outcome.value).toMatchObject({ code: ErrorCode.REFUSED });
});

test("a channel that is lost without a word: the command is handed over again, and done once", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.hub.loseChannels(1);
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(ext.browser.tabList).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1500);
  expect((await ext.outcome("c1")).outcome.case).toBe("result");
  expect(ext.browser.tabList).toHaveLength(3);
});
