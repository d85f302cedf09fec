/** Another token for the device: kept before it is used, and given up for the one before if the server does not take it. */
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Pairing } from "../src/bridge/messages.js";
import { pairingKey } from "../src/bridge/settings.js";
import { FakeExtension, pairing } from "./fake/extension.js";
import { until } from "./fake/until.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const soon = () => vi.advanceTimersByTimeAsync(30);
const kept = (ext: FakeExtension) => JSON.parse(ext.storage.local.items.get(pairingKey) ?? "null") as Pairing | null;

test("a new token is stored with the old one, used at once, and the old one is then forgotten", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.server.tokens.push("second");
  ext.server.link.send({ case: "rotate", value: {} });
  await until(() => expect(ext.server.links).toHaveLength(2));
  expect(kept(ext)).toEqual({ ...pairing, token: "second", previous: "secret" });
  expect(ext.used).toEqual(["secret", "second"]);
  ext.server.link.welcome();
  await soon();
  expect(kept(ext)).toEqual({ ...pairing, token: "second" });
  await vi.advanceTimersByTimeAsync(1000);
  expect(ext.server.links).toHaveLength(2);
});

test("the Welcome can ask for it, and it is tried again until it works", async () => {
  const ext = new FakeExtension();
  ext.link.start();
  await until(() => ext.server.link);
  ext.server.link.welcome({ rotateToken: true, heartbeatSeconds: 1000 });
  await soon();
  expect(kept(ext)).toEqual(pairing);
  ext.server.tokens.push("second");
  await vi.advanceTimersByTimeAsync(61_000);
  expect(kept(ext)?.token).toBe("second");
});

test("a token that cannot be stored is not used", async () => {
  const ext = new FakeExtension();
  await ext.online();
  ext.storage.local.full = true;
  ext.server.tokens.push("lost");
  ext.server.link.send({ case: "rotate", value: {} });
  await soon();
  expect(ext.used).toEqual(["secret"]);
  expect(kept(ext)).toEqual(pairing);
});

test("a token that the server does not take is given up for the one before", async () => {
  const ext = new FakeExtension();
  ext.storage.local.items.set(pairingKey, JSON.stringify({ ...pairing, token: "lost", previous: "secret" }));
  ext.server.watchFailures.push(new ConnectError("revoked", Code.Unauthenticated));
  ext.link.start();
  await until(() => ext.server.link);
  expect(ext.used.at(0)).toBe("lost");
  expect(ext.used.at(-1)).toBe("secret");
  expect(kept(ext)).toEqual(pairing);
});

test("dials are numbered, also across workers and with a clock that is set back", async () => {
  const ext = new FakeExtension();
  await ext.online();
  const first = ext.server.link.hello.dial;
  expect(first).toBeGreaterThan(0n);
  ext.killWorker();
  ext.clock.date -= 1e9;
  ext.server.link.fail();
  await vi.advanceTimersByTimeAsync(1000);
  expect(ext.server.links).toHaveLength(2);
  expect(ext.server.link.hello.dial).toBeGreaterThan(first);
});
