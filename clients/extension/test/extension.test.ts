/** The whole extension against a fake server: commands, state, links, and workers that are stopped. */
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorCode } from "@throwbar/es/pb/command";
import { EndReason } from "@throwbar/es/pb/device";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LinkStatus } from "../src/bridge/messages.js";
import { operatorKey, pairingKey } from "../src/bridge/settings.js";
import { FakeExtension, pairing } from "./fake/extension.js";
import { FakeServer } from "./fake/server.js";
import { until } from "./fake/until.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const soon = () => vi.advanceTimersByTimeAsync(30);

const status = async (ext: FakeExtension) =>
  ((await ext.link.receive({ to: "link", kind: "status" })) as LinkStatus).state;

test("Hello says who the device is, the snapshot what it has", async () => {
  const ext = new FakeExtension();
  await ext.online();
  const { hello } = ext.server.link;
  expect(hello).toMatchObject({ deviceId: "dev1", version: "1", agent: "Fake 1", platform: "linux", outcomes: [] });
  expect(hello.bootTag).toMatch(/^[a-z2-7]{4}$/);
  expect(hello.catalogueDigest).toMatch(/^[0-9a-f]{64}$/);
  expect(hello.actions).toHaveLength(14);
  expect(hello.actions).not.toContain("custom");
  const [snapshot] = ext.server.link.of("snapshot");
  expect(snapshot?.tabs.map(({ url }) => url)).toEqual(["https://a.test/", "https://b.test/"]);
  expect(snapshot?.tabs[0]?.tabId).toBe(`dev1_t${hello.bootTag}-${ext.browser.tabList[0]?.id}`);
  expect(await status(ext)).toBe("online");
});

test("a command is acknowledged, its effect is told before its outcome, and a delta counts on from the snapshot", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  await ext.outcome("c1");
  const said = ext.server.link.received.map(({ kind }) => kind.case).filter((name) => name !== "heartbeat");
  expect(said.slice(0, 2)).toEqual(["snapshot", "acknowledgement"]);
  expect(said.at(-1)).toBe("outcome");
  const [delta] = ext.server.link.of("delta");
  const [snapshot] = ext.server.link.of("snapshot");
  expect(delta?.sequence).toBe((snapshot?.sequence ?? 0n) + 1n);
  expect(delta?.tabs.some(({ url }) => url === "https://new.test/")).toBe(true);
});

test("commands run side by side: one that waits holds up no other", async () => {
  const ext = new FakeExtension();
  const [guarded, plain] = ext.browser.tabList;
  Object.assign(guarded ?? {}, { guarded: true });
  await ext.online();
  const id = (tab: { id: number } | undefined) => `dev1_t${ext.server.link.hello.bootTag}-${tab?.id}`;
  ext.command("slow", { case: "closeTabs", value: { tabIds: [id(guarded)] } });
  ext.command("quick", { case: "muteTabs", value: { tabIds: [id(plain)], muted: true } });
  expect((await ext.outcome("quick")).outcome.case).toBe("result");
  expect(ext.server.link.of("outcome").map(({ commandId }) => commandId)).toEqual(["quick"]);
  await vi.advanceTimersByTimeAsync(29_000);
  expect((await ext.outcome("slow")).outcome.value).toMatchObject({ kind: { value: { closedCount: 0 } } });
});

test("a command whose worker is stopped in the middle is handed to the next worker, and done once", async () => {
  const ext = new FakeExtension();
  await ext.online();
  const real = ext.browser.tabs.create;
  const created = new Promise<void>((done) => {
    ext.browser.tabs.create = async (tab) => {
      await real(tab);
      done();
      return new Promise(() => {});
    };
  });
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  await created;
  ext.killWorker();
  const { outcome } = await ext.outcome("c1");
  expect(outcome.case).toBe("result");
  expect(ext.browser.tabList).toHaveLength(3);
  expect(ext.server.links).toHaveLength(1);
});

test("a worker that was stopped costs no delta: the next one tells what it missed", async () => {
  const ext = new FakeExtension();
  await ext.online();
  await vi.advanceTimersByTimeAsync(300);
  const before = ext.server.link.hello.bootTag;
  ext.browser.deafen();
  ext.browser.addTab("https://unseen.test/");
  ext.killWorker();
  await vi.advanceTimersByTimeAsync(300);
  const delta = ext.server.link.of("delta").at(-1);
  expect(delta?.tabs.find(({ url }) => url === "https://unseen.test/")?.tabId).toContain(before);
});

test("after a restart of the browser the ids are others, and old ones are not found", async () => {
  const ext = new FakeExtension();
  await ext.online();
  const old = ext.server.link.of("snapshot")[0]?.tabs[0]?.tabId ?? "";
  ext.restartBrowser();
  await ext.link.receive({ to: "link", kind: "restart" });
  await until(() => expect(ext.server.links).toHaveLength(2));
  ext.server.link.welcome();
  await soon();
  expect(ext.server.link.hello.bootTag).not.toBe(old.slice(6, 10));
  ext.command("c1", { case: "closeTabs", value: { tabIds: [old] } });
  expect((await ext.outcome("c1")).outcome.value).toMatchObject({ kind: { value: { closedCount: 0 } } });
  expect(ext.browser.tabList).toHaveLength(2);
});

test("outcomes that the server has not written down come with the next Hello, and not after the receipt", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.command("c1", { case: "openTab", value: { url: "one.test" } });
  ext.command("c2", { case: "openTab", value: { url: "two.test" } });
  await ext.outcome("c1");
  await ext.outcome("c2");
  ext.server.link.send({ case: "receipt", value: { commandIds: ["c1"] } });
  await soon();
  ext.server.link.fail();
  await vi.advanceTimersByTimeAsync(1000);
  expect(ext.server.links).toHaveLength(2);
  expect(ext.server.link.hello.outcomes.map(({ commandId }) => commandId)).toEqual(["c2"]);
});

test("what runs is named in Hello; what the server keeps goes on, the rest is dropped", async () => {
  const ext = new FakeExtension();
  for (const tab of ext.browser.tabList) {
    tab.guarded = true;
  }
  await ext.online();
  const ids = ext.server.link.of("snapshot")[0]?.tabs.map(({ tabId }) => tabId) ?? [];
  ext.command("keep", { case: "closeTabs", value: { tabIds: ids.slice(0, 1) } });
  ext.command("drop", { case: "closeTabs", value: { tabIds: ids.slice(1) } });
  await soon();
  ext.server.link.fail();
  await vi.advanceTimersByTimeAsync(1000);
  expect(ext.server.link.hello.runningCommandIds.sort()).toEqual(["drop", "keep"]);
  ext.server.link.welcome({ keepCommandIds: ["keep"] });
  expect((await ext.outcome("drop")).outcome.case).toBe("result");
  await vi.advanceTimersByTimeAsync(29_000);
  expect((await ext.outcome("keep")).outcome.case).toBe("result");
  expect(ext.browser.removals).toHaveLength(2);
});

test("a kept command that only the journal knows is taken up", async () => {
  const ext = new FakeExtension();
  const real = ext.browser.tabs.create;
  ext.browser.tabs.create = async (tab) => {
    await real(tab);
    return new Promise(() => {});
  };
  await ext.online();
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  await soon();
  // Another link part, as after a crash of the browser's process for it.
  const next = new FakeExtension(ext.browser);
  next.storage.local.items.clear();
  for (const [key, value] of ext.storage.local.items) {
    next.storage.local.items.set(key, value);
  }
  for (const [key, value] of ext.storage.session.items) {
    next.storage.session.items.set(key, value);
  }
  next.link.start();
  await until(() => next.server.link);
  expect(next.server.link.hello.runningCommandIds).toEqual(["c1"]);
  next.server.link.welcome({ keepCommandIds: ["c1"] });
  expect((await next.outcome("c1")).outcome.case).toBe("result");
  expect(ext.browser.tabList).toHaveLength(3);
});

test("a repeated delivery is acknowledged again and answered once more", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  await ext.outcome("c1");
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  await soon();
  expect(ext.server.link.of("outcome")).toHaveLength(2);
  expect(ext.browser.tabList).toHaveLength(3);
});

test("an action that is newer than this extension is answered UNSUPPORTED with its id", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.link.send({ case: "command", value: { commandId: "c1", action: {}, timeLeft: { seconds: 10n } } });
  expect((await ext.outcome("c1")).outcome.value).toMatchObject({ code: ErrorCode.UNSUPPORTED });
});

test("a cancellation reaches the command", async () => {
  const ext = new FakeExtension();
  const [guarded] = ext.browser.tabList;
  Object.assign(guarded ?? {}, { guarded: true });
  await ext.online();
  const id = ext.server.link.of("snapshot")[0]?.tabs[0]?.tabId ?? "";
  ext.command("c1", { case: "closeTabs", value: { tabIds: [id] } });
  await soon();
  ext.server.link.send({ case: "cancel", value: { commandId: "c1" } });
  expect((await ext.outcome("c1")).outcome.value).toMatchObject({ kind: { value: { closedCount: 0 } } });
});

test("heartbeats are answered, and a silent server is left", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.link.send({ case: "heartbeat", value: { number: 7n } });
  await soon();
  expect(ext.server.link.of("heartbeat")).toMatchObject([{ seen: 0n }, { seen: 7n }]);
  const [first] = ext.server.links;
  await vi.advanceTimersByTimeAsync(37_000);
  expect(first?.signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(2000);
  expect(first?.signal.aborted).toBe(true);
  expect(ext.server.links).toHaveLength(2);
});

test("a server that never welcomes is left, too", async () => {
  const ext = new FakeExtension();
  ext.link.start();
  await vi.advanceTimersByTimeAsync(15_600);
  expect(ext.server.links).toHaveLength(2);
  expect(ext.server.links[0]?.signal.aborted).toBe(true);
});

test("a snapshot is sent whenever the server asks", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.link.send({ case: "resync", value: { reason: "gap" } });
  await soon();
  expect(ext.server.link.of("snapshot")).toHaveLength(2);
});

test.each(["lost request", "lost answer"] as const)("a report is repeated under its number: %s", async (failure) => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.reportFailures.push(failure, failure);
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(ext.server.link.of("outcome")).toHaveLength(1);
  expect(ext.server.link.of("acknowledgement")).toHaveLength(1);
  expect(ext.server.links).toHaveLength(1);
});

test("a report that is refused ends the link, and the next Hello makes it good", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.reportFailures.push(new ConnectError("this link has ended", Code.NotFound));
  ext.command("c1", { case: "openTab", value: { url: "new.test" } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(ext.server.links).toHaveLength(2);
  expect(ext.server.link.hello.outcomes.map(({ commandId }) => commandId)).toEqual(["c1"]);
});

test("attempts are spread out further and further, up to half a minute", async () => {
  const ext = new FakeExtension();
  const gone = () => new ConnectError("gone", Code.Unavailable);
  ext.server.watchFailures.push(...Array.from({ length: 20 }, gone));
  ext.link.start();
  await soon();
  expect(await status(ext)).toBe("waiting");
  await vi.advanceTimersByTimeAsync(20 * 500);
  await until(() => ext.server.link);
});

test("a device that was replaced stays away until a person asks", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.link.send({ case: "end", value: { reason: EndReason.REPLACED } });
  await vi.advanceTimersByTimeAsync(120_000);
  expect(ext.server.links).toHaveLength(1);
  expect(await status(ext)).toBe("replaced");
  await ext.link.receive({ to: "link", kind: "check" });
  await vi.advanceTimersByTimeAsync(1000);
  expect(ext.server.links).toHaveLength(1);
  await ext.link.receive({ to: "link", kind: "restart" });
  await until(() => expect(ext.server.links).toHaveLength(2));
});

test("a device that was revoked forgets its pairing and nothing else", async () => {
  const ext = new FakeExtension();
  await ext.storage.local.set({ [operatorKey]: "mine" });
  await ext.online();
  ext.server.link.send({ case: "end", value: { reason: EndReason.REVOKED } });
  await soon();
  expect(ext.storage.local.items.has(pairingKey)).toBe(false);
  expect(ext.storage.local.items.has(operatorKey)).toBe(true);
  expect(["revoked", "unpaired"]).toContain(await status(ext));
});

test.each([EndReason.GOING_AWAY, EndReason.BUSY])(
  "a server that ends a link for %s is given the time that it asks for",
  async (reason) => {
    const ext = new FakeExtension();
    await ext.online();
    ext.server.link.send({ case: "end", value: { reason, retryAfter: { seconds: 5n } } });
    await soon();
    expect(await status(ext)).toBe("waiting");
    await vi.advanceTimersByTimeAsync(5000);
    expect(ext.server.links).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(ext.server.links).toHaveLength(2);
  },
);

test("a token that is not accepted is said plainly", async () => {
  const ext = new FakeExtension();
  ext.server.watchFailures.push(new ConnectError("this token is void", Code.Unauthenticated));
  ext.link.start();
  await soon();
  expect(await ext.link.receive({ to: "link", kind: "status" })).toMatchObject({
    state: "refused",
    detail: "this token is void Pair this browser again.",
  });
});

test("nothing is dialled before the browser is paired, and at once when it is", async () => {
  const ext = new FakeExtension(undefined, false);
  ext.link.start();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ext.server.links).toHaveLength(0);
  expect(await status(ext)).toBe("unpaired");
  await ext.storage.local.set({ [pairingKey]: pairing });
  await until(() => ext.server.link);
});

test("another pairing ends the old link before there is a new one", async () => {
  const ext = new FakeExtension();
  await ext.online();
  const old = ext.server.link;
  await ext.storage.local.set({ [pairingKey]: { ...pairing, deviceId: "dev2" } });
  await until(() => expect(ext.server.links).toHaveLength(2));
  expect(old.signal.aborted).toBe(true);
  expect(ext.server.link.hello.deviceId).toBe("dev2");
  expect(new FakeServer().links).toEqual([]);
});
