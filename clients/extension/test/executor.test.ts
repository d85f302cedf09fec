import { create } from "@bufbuild/protobuf";
import { ErrorCode } from "@throwbar/es/pb/command";
import { CommandRequestSchema, type Outcome } from "@throwbar/es/pb/device";
import { expect, test, vi } from "vitest";
import { type Delivery, Executor } from "../src/commands/executor.js";
import { Journal } from "../src/journal/journal.js";
import { FakeBrowser } from "./fake/browser.js";
import { FakeClock } from "./fake/clock.js";
import { identity, type Kind, tabId } from "./fake/context.js";
import { FakeArea } from "./fake/storage.js";
import { until } from "./fake/until.js";

const a = "https://a.test/";

class Device {
  readonly browser = new FakeBrowser(a, "https://b.test/", "https://c.test/");
  readonly storage = new FakeArea();
  readonly session = new FakeArea();
  readonly clock = new FakeClock();
  boot = identity.boot;
  executor = this.start();

  /** The next start of the worker. */
  start(): Executor {
    this.executor = new Executor({
      browser: this.browser,
      clock: this.clock,
      journal: new Journal(this.storage, this.clock),
      session: this.session,
      identity: async () => ({ ...identity, boot: this.boot }),
      current: (id) => id,
      flush: async () => {},
    });
    return this.executor;
  }

  delivery(commandId: string, kind: Kind | undefined, leftMs = 30_000): Delivery {
    const action = kind === undefined ? {} : { kind };
    return {
      request: create(CommandRequestSchema, { commandId, action }),
      leftMs,
      receivedAt: this.clock.wall(),
    };
  }

  deliver(commandId: string, kind: Kind | undefined, leftMs?: number): Promise<Outcome> {
    return this.executor.deliver(this.delivery(commandId, kind, leftMs), () => {});
  }
}

/** How it ended, in short. */
function short({ outcome }: Outcome): string {
  if (outcome.case === "error") {
    return ErrorCode[outcome.value.code];
  }
  return outcome.value?.kind.case ?? "nothing";
}

const open: Kind = { case: "openTab", value: { url: "https://new.test/" } };

/** Makes a call of the browser hang after it has done what it does. */
function hang<K extends "create" | "remove" | "update" | "move" | "group">(
  browser: FakeBrowser,
  name: K,
): Promise<void> {
  return new Promise((done) => {
    const tabs = browser.tabs as unknown as Record<K, (...args: unknown[]) => Promise<unknown>>;
    const real = tabs[name];
    tabs[name] = async (...args) => {
      await real(...args);
      tabs[name] = real;
      done();
      return new Promise(() => {});
    };
  });
}

test("a command is acknowledged once it is written down, and before it is done", async () => {
  const device = new Device();
  const acknowledged = vi.fn(() => {
    expect(device.storage.items.has("journal/c1")).toBe(true);
    expect(device.browser.tabList).toHaveLength(3);
  });
  expect(short(await device.executor.deliver(device.delivery("c1", open), acknowledged))).toBe("openTab");
  expect(acknowledged).toHaveBeenCalledTimes(1);
});

test("a repeat is answered from the journal, by this worker and by the next", async () => {
  const device = new Device();
  const first = await device.deliver("c1", open);
  expect(await device.deliver("c1", open)).toEqual(first);
  device.start();
  expect(await device.deliver("c1", open)).toEqual(first);
  expect(await device.executor.resume("c1")).toEqual(first);
  expect(device.browser.tabList).toHaveLength(4);
});

test("a repeat joins the command while it runs", async () => {
  const device = new Device();
  const [first, second] = await Promise.all([device.deliver("c1", open), device.deliver("c1", open)]);
  expect(second).toEqual(first);
  expect(device.browser.tabList).toHaveLength(4);
});

test.each([
  [undefined, "UNSUPPORTED"],
  [{ case: "custom", value: { method: "x", descriptorDigest: "y" } }, "UNSUPPORTED"],
  [{ case: "closeTabs", value: { tabIds: [] } }, "INVALID"],
  [{ case: "closeTabs", value: { tabIds: [""] } }, "INVALID"],
  [{ case: "pinTabs", value: { tabIds: ["x"] } }, "INVALID"],
] as [Kind | undefined, string][])("%j is answered %s and leaves no trace", async (kind, code) => {
  const device = new Device();
  expect(short(await device.deliver("c1", kind))).toBe(code);
  expect(device.storage.items.size).toBe(0);
});

test("nothing runs after the deadline, also when it passes while the command is written down", async () => {
  const device = new Device();
  expect(short(await device.deliver("c1", open, 0))).toBe("EXPIRED");
  device.storage.set = ((real) => async (items) => {
    await real(items);
    device.clock.pass(1000);
  })(device.storage.set.bind(device.storage));
  expect(short(await device.deliver("c2", open, 900))).toBe("EXPIRED");
  expect(device.browser.tabList).toHaveLength(3);
  const delivery = device.delivery("c3", open, 500);
  device.clock.pass(600);
  expect(short(await device.executor.deliver(delivery, () => {}))).toBe("EXPIRED");
});

test("a storage that is full lets nothing run", async () => {
  const device = new Device();
  device.storage.full = true;
  expect(short(await device.deliver("c1", open))).toBe("FAILED");
  expect(device.browser.tabList).toHaveLength(3);
});

test("openTab after a stop: the tab that is there is the answer", async () => {
  const device = new Device();
  device.browser.addTab("https://new.test/");
  const created = hang(device.browser, "create");
  void device.deliver("c1", open);
  await created;
  device.start();
  const outcome = await device.deliver("c1", open);
  expect(outcome.outcome.value).toMatchObject({
    kind: { case: "openTab", value: { tabId: tabId(device.browser.tabList[4]?.id ?? 0) } },
  });
  expect(device.browser.tabList).toHaveLength(5);
});

test("openTab after a stop: without a trace of it no second one is opened", async () => {
  vi.useFakeTimers();
  try {
    const device = new Device();
    device.browser.tabs.create = () => new Promise(() => {});
    void device.deliver("c1", open);
    await vi.advanceTimersByTimeAsync(10);
    device.start();
    void device.executor.resume("c1");
    await vi.advanceTimersByTimeAsync(1000);
    device.clock.pass(1900);
    // Stopped once more while it looks: what is left of the search is a moment, however often it begins.
    device.start();
    const outcome = device.executor.resume("c1");
    let settled = false;
    void outcome.then(() => {
      settled = true;
    });
    await vi.advanceTimersByTimeAsync(100);
    expect(settled).toBe(false);
    device.clock.pass(100);
    await vi.advanceTimersByTimeAsync(100);
    expect(short(await outcome)).toBe("INTERRUPTED");
    expect(device.browser.tabList).toHaveLength(3);
  } finally {
    vi.useRealTimers();
  }
});

test("a command that was stopped before it began is simply run", async () => {
  const device = new Device();
  device.browser.tabs.list = ((real) => {
    let first = true;
    return (windowId) => {
      if (first) {
        first = false;
        return new Promise(() => {});
      }
      return real(windowId);
    };
  })(device.browser.tabs.list);
  void device.deliver("c1", open);
  await until(() => expect(device.storage.items.has("journal/c1")).toBe(true));
  device.start();
  expect(short(await device.deliver("c1", open))).toBe("openTab");
  expect(device.browser.tabList).toHaveLength(4);
});

test("navigateTab after a stop is told by where the tab is", async () => {
  const device = new Device();
  const id = tabId(device.browser.tabList[0]?.id ?? 0);
  const navigate: Kind = { case: "navigateTab", value: { tabId: id, url: "https://there.test/" } };
  const updated = hang(device.browser, "update");
  void device.deliver("c1", navigate);
  await updated;
  device.start();
  expect(short(await device.deliver("c1", navigate))).toBe("navigateTab");
  const again = hang(device.browser, "update");
  void device.deliver("c2", navigate);
  await again;
  Object.assign(device.browser.tabList[0] ?? {}, { url: "https://elsewhere.test/", pendingUrl: "" });
  device.start();
  expect(short(await device.deliver("c2", navigate))).toBe("INTERRUPTED");
});

test("groupTabs and moveTabs after a stop are told by how the tabs are", async () => {
  const device = new Device();
  const ids = device.browser.tabList.map(({ id }) => tabId(id));
  const group: Kind = { case: "groupTabs", value: { tabIds: ids.slice(0, 2) } };
  const grouped = hang(device.browser, "group");
  void device.deliver("c1", group);
  await grouped;
  device.start();
  expect(short(await device.deliver("c1", group))).toBe("groupTabs");
  const move: Kind = { case: "moveTabs", value: { tabIds: ids.slice(2), index: 0 } };
  const moved = hang(device.browser, "move");
  void device.deliver("c2", move);
  await moved;
  device.start();
  expect(short(await device.deliver("c2", move))).toBe("moveTabs");
  const away: Kind = { case: "moveTabs", value: { tabIds: ids.slice(2) } };
  const left = hang(device.browser, "move");
  void device.deliver("c3", away);
  await left;
  device.start();
  // It is the last one of its window.
  expect(short(await device.deliver("c3", away))).toBe("moveTabs");
});

test("reloadTabs after a stop is not done again", async () => {
  const device = new Device();
  const reload: Kind = { case: "reloadTabs", value: { tabIds: [tabId(device.browser.tabList[0]?.id ?? 0)] } };
  let reloads = 0;
  device.browser.tabs.reload = () => {
    reloads++;
    return new Promise(() => {});
  };
  void device.deliver("c1", reload);
  await until(() => expect(reloads).toBe(1));
  device.start();
  expect(short(await device.deliver("c1", reload))).toBe("INTERRUPTED");
  expect(reloads).toBe(1);
});

test("restoreTabs after a stop opens what was not opened, and nothing twice", async () => {
  const device = new Device();
  const saved = ["s1", "s2", "s3"].map((savedId, at) => ({ savedId, url: `https://${savedId}.test/`, index: 3 + at }));
  const savedIds = saved.map(({ savedId }) => savedId);
  const delivery = () => ({
    ...device.delivery("c1", undefined),
    request: create(CommandRequestSchema, {
      commandId: "c1",
      action: { kind: { case: "restoreTabs", value: { savedIds } } },
      saved,
    }),
  });
  let opened = 0;
  const real = device.browser.tabs.create;
  const second = new Promise<void>((done) => {
    device.browser.tabs.create = async (tab) => {
      const made = await real(tab);
      opened++;
      if (opened === 2) {
        done();
        return new Promise(() => {});
      }
      return made;
    };
  });
  void device.executor.deliver(delivery(), () => {});
  await second;
  device.start();
  const outcome = await device.executor.deliver(delivery(), () => {});
  expect(outcome.outcome.value).toMatchObject({ kind: { value: { restoredCount: 3 } } });
  expect(device.browser.tabList.map(({ url }) => url).slice(3)).toEqual(saved.map(({ url }) => url));
});

test("after a restart of the browser nothing is read from tabs of the new one", async () => {
  const device = new Device();
  const created = hang(device.browser, "create");
  void device.deliver("c1", open);
  await created;
  device.boot = "next";
  device.start();
  expect(short(await device.deliver("c1", open))).toBe("INTERRUPTED");
});

test("a cancellation stops what waits, and reports what was done", async () => {
  const device = new Device();
  const [first] = device.browser.tabList;
  Object.assign(first ?? {}, { guarded: true });
  const tabIds = device.browser.tabList.slice(0, 2).map(({ id }) => tabId(id));
  const closing = device.deliver("c1", { case: "closeTabs", value: { tabIds } });
  await until(() => expect(device.browser.removals).toHaveLength(2));
  device.executor.cancel("c1");
  expect((await closing).outcome.value).toMatchObject({ kind: { value: { closedCount: 1 } } });
});

test("a cancellation before the effect prevents it", async () => {
  const device = new Device();
  const opening = device.deliver("c1", open);
  device.executor.cancel("c1");
  expect(short(await opening)).toBe("CANCELLED");
  expect(device.browser.tabList).toHaveLength(3);
});

test("what the server gave up is not taken up again", async () => {
  const device = new Device();
  const created = hang(device.browser, "create");
  void device.deliver("c1", open);
  await created;
  device.start();
  await device.executor.drop(["c1", "c9"]);
  expect(short(await device.executor.resume("c1"))).toBe("CANCELLED");
  expect(short(await device.executor.resume("c9"))).toBe("INTERRUPTED");
});

test("a command that hangs holds up no other one, and each has its own deadline", async () => {
  vi.useFakeTimers();
  try {
    const device = new Device();
    const [first, second] = device.browser.tabList;
    Object.assign(first ?? {}, { guarded: true });
    const closing = device.deliver("c1", { case: "closeTabs", value: { tabIds: [tabId(first?.id ?? 0)] } }, 20_000);
    await vi.advanceTimersByTimeAsync(100);
    const others = Promise.all([
      device.deliver("c2", { case: "getActiveTab", value: {} }, 5000),
      device.deliver("c3", { case: "closeTabs", value: { tabIds: [tabId(second?.id ?? 0)] } }, 5000),
      device.deliver("c4", { case: "closeTabs", value: { tabIds: [tabId(first?.id ?? 0)] } }, 5000),
    ]);
    await vi.advanceTimersByTimeAsync(1000);
    const outcomes = (await others).map(({ outcome }) => outcome.value);
    expect(outcomes).toMatchObject([
      { kind: { case: "getActiveTab" } },
      { kind: { value: { closedCount: 1 } } },
      { kind: { value: { closedCount: 0 } } },
    ]);
    await vi.advanceTimersByTimeAsync(20_000);
    expect((await closing).outcome.value).toMatchObject({ kind: { value: { closedCount: 0 } } });
  } finally {
    vi.useRealTimers();
  }
});

test("a storage that is full says so, and that nothing was done", async () => {
  const device = new Device();
  device.storage.full = true;
  const { outcome } = await device.deliver("c1", open);
  expect(outcome.value).toMatchObject({ code: ErrorCode.FAILED, retryable: true });
  expect(outcome.case === "error" ? outcome.value.message : "").toContain("takes no more");
});

test("the worker is kept awake while a command waits", async () => {
  vi.useFakeTimers();
  try {
    const device = new Device();
    const [first] = device.browser.tabList;
    Object.assign(first ?? {}, { guarded: true });
    const closing = device.deliver("c1", { case: "closeTabs", value: { tabIds: [tabId(first?.id ?? 0)] } }, 60_000);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(device.browser.awakeCalls).toBeGreaterThanOrEqual(3);
    expect((await closing).outcome.value).toMatchObject({ kind: { value: { closedCount: 0 } } });
  } finally {
    vi.useRealTimers();
  }
});
