/** What the build for Firefox has in place of, or beside, what the one for Chromium has. */
import type { WatchResponse } from "@throwbar/es/pb/device";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { together } from "../src/bridge/together.js";
import { handlers, handlersFor } from "../src/commands/handlers.js";
import { awake } from "../src/link/awake.js";
import type { LinkCalls } from "../src/link/session.js";
import { browserError } from "../src/platform/firefox/errors.js";
import { allowServer } from "../src/platform/firefox/page.js";
import type { Channel, MessagePort } from "../src/platform/port.js";
import { until } from "./fake/until.js";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

test.each([
  ["Invalid tab ID: 17", "noTab", 17],
  ["Invalid window ID: 4", "noWindow", 4],
  ["No group with id: 3", "noGroup", 3],
  ["Illegal URL: about:config", "refusedUrl", undefined],
  ["Something new", "other", undefined],
])("Firefox says %s", (text, kind, missingId) => {
  expect(browserError(new Error(text))).toMatchObject({ kind, message: text, missingId });
});

test("a server's host is asked for first thing, without a port, while Firefox still remembers the click", async () => {
  const request = vi.fn(() => Promise.resolve(true));
  vi.stubGlobal("chrome", { permissions: { request } });
  const answer = allowServer("http://127.0.0.1:3913");
  expect(request).toHaveBeenCalledExactlyOnceWith({ origins: ["http://127.0.0.1/*"] });
  expect(await answer).toBe(true);
});

test("Firefox closes nothing where one tab of several is gone: those before it are asked all the same, each once", async () => {
  const open = new Set([1, 2, 4]);
  const asked: number[][] = [];
  const remove = async (ids: readonly number[]) => {
    asked.push([...ids]);
    const gone = ids.find((id) => !open.has(id));
    if (gone !== undefined) {
      throw new Error(`No tab with id: ${gone}.`);
    }
    for (const id of ids) {
      open.delete(id);
    }
  };
  vi.stubGlobal("chrome", { tabs: { remove } });
  const { chromeTabs } = await import("../src/platform/firefox/tabs.js");
  await expect(chromeTabs.remove([1, 2, 3, 4])).rejects.toMatchObject({ kind: "noTab", missingId: 3 });
  expect([...open]).toEqual([4]);
  await chromeTabs.remove([4]);
  expect(asked).toEqual([[1, 2, 3, 4], [1], [2], [4]]);
});

describe("tab groups", () => {
  test("where there are none, nothing is listed, and what needs them is declined and not offered", async () => {
    vi.stubGlobal("chrome", { tabs: {} });
    const { chromeGroups, chromeTabs } = await import("../src/platform/firefox/tabs.js");
    expect(await chromeGroups.list()).toEqual([]);
    await expect(chromeTabs.group([1], { windowId: 1 })).rejects.toThrow("no tab groups");
    const able = handlersFor({ groups: chromeGroups });
    const names = Object.keys(handlers) as (keyof typeof handlers)[];
    expect(names.filter((name) => able[name] !== handlers[name]).sort()).toEqual(["groupTabs", "ungroupTabs"]);
  });

  test("where there are some, they are used", async () => {
    vi.stubGlobal("chrome", { tabs: { group: () => {} }, tabGroups: {} });
    const { chromeGroups } = await import("../src/platform/firefox/tabs.js");
    expect(chromeGroups.missing).toBeUndefined();
    expect(handlersFor({ groups: chromeGroups })).toBe(handlers);
  });
});

describe("worker and link in one context", () => {
  let outside: MessagePort;
  let connected: ((channel: Channel) => void)[];

  beforeEach(() => {
    connected = [];
    outside = {
      send: vi.fn((message: unknown) => Promise.resolve(`outside took ${String(message)}`)),
      tell: vi.fn(),
      onMessage: vi.fn(),
      connect: vi.fn(),
      onConnect: (listener) => connected.push(listener),
    };
  });

  test("a message goes to the part here that takes it, else to the rest of the extension", async () => {
    const port = together(outside);
    port.onMessage((message) => (message === "a" ? Promise.resolve("first") : undefined));
    port.onMessage((message) => (message === "b" ? Promise.reject(new Error("second")) : undefined));
    expect(await port.send("a")).toBe("first");
    await expect(port.send("b")).rejects.toThrow("second");
    expect(outside.send).not.toHaveBeenCalled();
    expect(await port.send("c")).toBe("outside took c");
  });

  test("parts here hear what others send, and pages hear what is told", () => {
    const port = together(outside);
    const listener = vi.fn(() => undefined);
    port.onMessage(listener);
    expect(outside.onMessage).toHaveBeenCalledExactlyOnceWith(listener);
    port.tell("status");
    expect(outside.tell).toHaveBeenCalledExactlyOnceWith("status");
  });

  test("a channel carries both ways in order, later than it was posted, and nothing after its end", async () => {
    const port = together(outside);
    const seen: unknown[] = [];
    port.onConnect((channel) => {
      channel.onMessage((message) => {
        seen.push(message);
        channel.post(`re ${String(message)}`);
      });
      channel.onClose(() => seen.push("closed"));
    });
    const channel = port.connect("command");
    channel.onMessage((message) => {
      seen.push(message);
      if (message === "re 2") {
        channel.close();
        channel.post("too late");
      }
    });
    channel.post("1");
    channel.post("2");
    expect(seen).toEqual([]);
    await until(() => expect(seen).toContain("closed"));
    await Promise.resolve();
    expect(seen).toEqual(["1", "2", "re 1", "re 2", "closed"]);
    expect(outside.connect).not.toHaveBeenCalled();
    expect(connected).toHaveLength(1);
  });
});

test("each frame of the server is a sign of life, also where the call for it is refused", async () => {
  const frames = [1, 2, 3] as unknown as WatchResponse[];
  const stayAwake = vi.fn(() => Promise.reject(new Error("not now")));
  const calls = {
    watch: async function* () {
      yield* frames;
    },
    report: vi.fn(),
    rotate: vi.fn(),
  } as unknown as LinkCalls;
  const seen: WatchResponse[] = [];
  const watched = awake(() => calls, stayAwake)({ server: "", deviceId: "", token: "", name: "" });
  for await (const frame of watched.watch({} as never, new AbortController().signal)) {
    seen.push(frame);
    expect(stayAwake).toHaveBeenCalledTimes(seen.length);
  }
  expect(seen).toEqual(frames);
  expect(watched.report).toBe(calls.report);
});
