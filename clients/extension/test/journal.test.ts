import { expect, test } from "vitest";
import { Journal } from "../src/journal/journal.js";
import { FakeClock } from "./fake/clock.js";
import { FakeArea } from "./fake/storage.js";

const hour = 3600 * 1000;
const begun = { boot: "boot", request: "cmVx", leftMs: 1000, receivedAt: 0 };

function make() {
  const storage = new FakeArea();
  const clock = new FakeClock();
  return { storage, clock, journal: new Journal(storage, clock) };
}

test("an entry goes from started over begun to ended, and outlives the journal that wrote it", async () => {
  const { storage, clock, journal } = make();
  const started = await journal.start("c1", begun);
  await journal.begin("c1", started, { n: 1 });
  expect(await new Journal(storage, clock).get("c1")).toMatchObject({ state: "started", begun: { note: { n: 1 } } });
  await journal.end("c1", "b3V0");
  expect(await new Journal(storage, clock).get("c1")).toMatchObject({
    state: "ended",
    outcome: "b3V0",
    receipted: false,
  });
});

test("entries are kept for 24 hours and not longer", async () => {
  const { clock, journal, storage } = make();
  await journal.end("old", "x");
  clock.pass(23 * hour);
  await journal.end("new", "x");
  expect(await journal.get("old")).toBeDefined();
  clock.pass(hour);
  expect(await journal.get("old")).toBeUndefined();
  expect((await journal.load()).map(([id]) => id)).toEqual(["new"]);
  expect([...storage.items.keys()]).toEqual(["journal/new"]);
});

test("a receipt is remembered for what has ended, and only that", async () => {
  const { journal } = make();
  await journal.end("c1", "x");
  await journal.start("c2", begun);
  await journal.receipt(["c1", "c2", "c3"]);
  expect(await journal.get("c1")).toMatchObject({ receipted: true, outcome: "x" });
  expect(await journal.get("c2")).toMatchObject({ state: "started" });
  expect(await journal.get("c3")).toBeUndefined();
});

test("what the server has goes first when there is too much, and what it has not stays", async () => {
  const { clock, journal } = make();
  const big = "x".repeat(1_000_000);
  for (let n = 0; n < 10; n++) {
    clock.pass(1000);
    await journal.end(`c${n}`, big);
  }
  expect(await journal.load()).toHaveLength(10);
  await journal.receipt(Array.from({ length: 10 }, (_, n) => `c${n}`).slice(1));
  const kept = (await journal.load()).map(([id]) => id);
  expect(kept).toEqual(["c0", "c5", "c6", "c7", "c8", "c9"]);
});

test("writes of one command stay in order", async () => {
  const { journal } = make();
  await Promise.all([journal.start("c", begun), journal.end("c", "x"), journal.receipt(["c"])]);
  expect(await journal.get("c")).toMatchObject({ state: "ended", receipted: true });
});

test("other things in the storage are left alone", async () => {
  const { storage, journal } = make();
  await storage.set({ pairing: { token: "secret" } });
  await journal.load();
  expect(storage.items.has("pairing")).toBe(true);
});

test("what is too old goes while commands are run, without a new dial", async () => {
  const { storage, clock, journal } = make();
  await journal.end("old", "x");
  for (let n = 0; n < 25; n++) {
    clock.pass(hour + 1);
    await journal.end(`c${n}`, "x");
  }
  await journal.get("c24");
  expect(storage.items.has("journal/old")).toBe(false);
  expect(storage.items.has("journal/c24")).toBe(true);
});

test("a full storage gives up what the server has anyway, and nothing else", async () => {
  const { storage, journal } = make();
  await journal.end("known", "x");
  await journal.end("unknown", "x");
  await journal.receipt(["known"]);
  storage.most = 2;
  await journal.start("c1", begun);
  expect([...storage.items.keys()].sort()).toEqual(["journal/c1", "journal/unknown"]);
  await expect(journal.start("c2", begun)).rejects.toThrow("quota");
});

test("an end that the storage does not take is known to this worker, and is written down once there is room", async () => {
  const { storage, journal } = make();
  await journal.start("c1", begun);
  storage.full = true;
  await journal.end("c1", "b3V0");
  expect(await journal.get("c1")).toMatchObject({ state: "ended", outcome: "b3V0" });
  expect(await journal.load()).toMatchObject([["c1", { state: "ended", outcome: "b3V0" }]]);
  storage.full = false;
  await journal.receipt(["c1"]);
  expect(await new Journal(storage, new FakeClock()).get("c1")).toMatchObject({ state: "ended", receipted: true });
});
