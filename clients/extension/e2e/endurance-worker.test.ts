/**
 * The worker is stopped at random moments while commands of every kind run side by side. Nothing is done twice, every command
 * ends with a typed answer, the link stands, and in the end the server's view is the browser's. THROWBAR_ENDURANCE=1 makes it
 * 500 commands and 50 stops; THROWBAR_SEED repeats a run.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { spread, table } from "./harness/figures.js";
import { Fixture } from "./harness/fixture.js";
import { Load } from "./harness/load.js";
import { Chance } from "./harness/random.js";
import { deltaFaults } from "./harness/tap.js";

const long = process.env.THROWBAR_ENDURANCE !== undefined;
const commands = long ? 500 : 60;
const stops = long ? 50 : 6;
const lanes = 4;
/** A command takes some tens of milliseconds: most stops fall into the middle of several. */
const mostDelayMs = 60;

let f: Fixture;

beforeAll(async () => {
  f = await Fixture.start("endurance", {}, true);
});

afterAll(async () => {
  await f?.stop();
});

test(
  "the worker is stopped again and again while commands run",
  async () => {
    const chance = new Chance();
    console.log(`seed ${chance.seed}, ${commands} commands, ${stops} stops`);
    const load = new Load(f, chance);
    const moments = new Map<number, number>();
    while (moments.size < stops) {
      moments.set(chance.below(commands), chance.between(0, mostDelayMs));
    }
    const killer = await f.browser.workerKiller(f.page);
    let stopping: Promise<unknown> = Promise.resolve();
    let stopped = 0;
    const took: number[] = [];
    let next = 0;
    const lane = async () => {
      // Commands go on until the last stop has hit a worker: they are what starts it.
      for (let at = next++; at < commands || stopped < stops; at = next++) {
        const delay = moments.get(at);
        if (delay !== undefined) {
          const due = new Promise((resolve) => setTimeout(resolve, delay));
          stopping = Promise.all([due, stopping])
            .then(() => killer.stopOne())
            .finally(() => {
              stopped++;
            });
        }
        const begun = performance.now();
        await load.one();
        took.push(performance.now() - begun);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    await stopping;
    await load.check();
    const workers = killer.started();
    await killer.end();
    const links = f.tap?.links ?? [];
    const ends = [...load.ends].sort(([a], [b]) => a.localeCompare(b)).map(([end, count]) => `${end} ${count}`);
    table(`${stops} stops of the worker in ${commands} commands`, {
      "workers started": workers,
      links: links.length,
      "a command took": spread(took).text,
      ends: ends.join(", "),
      "ended by their time": load.slow.join("; ") || "none",
      "frames from the server that were commands": count(
        links.flatMap((link) => link.toDevice),
        "command",
      ),
    });
    expect(load.faults).toEqual([]);
    expect(load.slow).toEqual([]);
    expect(long ? load.kinds().length : 14).toBe(14);
    expect([...load.ends.values()].reduce((a, b) => a + b, 0)).toBe(took.length);
    // Nothing may have started one after the last stop.
    expect(workers).toBeGreaterThanOrEqual(stops - 1);
    expect(links).toHaveLength(1);
    expect(links.flatMap(deltaFaults)).toEqual([]);
  },
  long ? 600_000 : 180_000,
);

test("a command for a worker that was stopped takes little longer than one for a worker that runs", async () => {
  await f.open("http://cold.test/");
  const took = { warm: [] as number[], cold: [] as number[] };
  const killer = await f.browser.workerKiller(f.page);
  for (let n = 0; n < (long ? 60 : 6); n++) {
    const cold = n % 2 === 1;
    // What a start of the worker brings along is over.
    await f.inStep();
    if (cold) {
      await killer.stopped();
    }
    const begun = performance.now();
    await f.run<"getActiveTab">({ case: "getActiveTab", value: {} });
    took[cold ? "cold" : "warm"].push(performance.now() - begun);
  }
  await killer.end();
  table("time of a command, from the server", {
    "the worker runs": spread(took.warm).text,
    "the worker was stopped": spread(took.cold).text,
  });
  // What it takes is in docs/browser-link.md; here it only must not wait for something that does not come.
  expect(spread(took.cold).max).toBeLessThan(10_000);
});

const count = (frames: readonly { readonly kind: { readonly case: string | undefined } }[], name: string) =>
  frames.filter(({ kind }) => kind.case === name).length;
