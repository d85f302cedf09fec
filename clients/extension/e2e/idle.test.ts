/**
 * A long time in which nothing happens: the browser stops the worker again and again, which must not cost the link. A debugger
 * would keep the worker alive, so nothing is attached: the profile is paired by a first run with the driver, and Chromium is
 * then started by itself. All that is seen is what the server sees: links, heartbeats, and how long commands take that are
 * sent at random moments, some after a pause in which the worker falls asleep.
 *
 * It takes real time: it runs only where THROWBAR_SOAK_SECONDS says how long. 1800 is what docs/browser-link.md reports.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { DeviceChange } from "@throwbar/es/pb/commands";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "./harness/browser.js";
import { spread, table } from "./harness/figures.js";
import { Fixture, resultOf } from "./harness/fixture.js";
import { signalAll, startProgram } from "./harness/process.js";
import { Chance } from "./harness/random.js";

const seconds = Number(process.env.THROWBAR_SOAK_SECONDS ?? 0);
const startsIn = 60_000;
/** What a person would not call waiting. */
const atOnceMs = 1000;
let f: Fixture | undefined;

beforeAll(async () => {
  f = seconds > 0 ? await Fixture.start() : undefined;
});

afterAll(async () => {
  await f?.stop();
});

/** Times of the device's changes, from now on. */
function watch({ api, deviceId }: Fixture) {
  const stop = new AbortController();
  const seen: { readonly change: string; readonly at: number }[] = [];
  let came: () => void = () => {};
  const online = new Promise<void>((resolve) => {
    came = resolve;
  });
  const done = (async () => {
    for await (const { event } of api.commands.watchEvents({ deviceId }, { signal: stop.signal })) {
      if (event?.kind.case === "device") {
        seen.push({ change: DeviceChange[event.kind.value.change] ?? "", at: performance.now() });
        if (event.kind.value.change === DeviceChange.ONLINE) {
          came();
        }
      }
    }
  })().catch(() => {});
  const end = () => {
    stop.abort();
    return done;
  };
  return { seen, online, end };
}

/** Starts Chromium with its profile and nothing attached. */
function startAlone({ program, profile, args }: Browser) {
  return startProgram(program, ["--headless=new", `--user-data-dir=${profile}`, ...args, "about:blank"]);
}

test.runIf(seconds > 0)(
  "the link stands through workers that come and go, and a command that comes at any moment is answered at once",
  async () => {
    if (f === undefined) {
      return;
    }
    const { api, browser, deviceId } = f;
    const chance = new Chance();
    console.log(`seed ${chance.seed}, ${seconds} s`);
    await browser.down();
    const before = await counts(f);
    const device = watch(f);
    const chromium = startAlone(browser);
    await device.online;
    const begun = performance.now();
    const left = () => seconds * 1000 - (performance.now() - begun);
    const took = { soon: [] as number[], late: [] as number[] };
    while (left() > 0) {
      const late = chance.next() < 0.6;
      // A worker is stopped after half a minute in which nothing happens.
      await sleep(Math.min(left(), 1000 * (late ? chance.between(40, 110) : chance.between(1, 12))));
      const sent = performance.now();
      const { outcomes } = await api.commands.dispatch({
        deviceIds: [deviceId],
        action: { kind: { case: "getActiveTab", value: {} } },
      });
      took[late ? "late" : "soon"].push(performance.now() - sent);
      expect(outcomes.map((outcome) => resultOf<"getActiveTab">(outcome).url)).toEqual(["about:blank"]);
    }
    const after = await counts(f);
    await device.end();
    const [soon, late] = [spread(took.soon), spread(took.late)];
    table(`${seconds} s without a debugger, seen from the server`, {
      "device changes": device.seen
        .map(({ change, at }) => `${change} at ${Math.round((at - begun) / 1000)} s`)
        .join(", "),
      "links opened": after.opened - before.opened,
      "links that stand": after.standing,
      "reports (heartbeats and outcomes)": after.reports - before.reports,
      "heartbeats missed": after.missed - before.missed,
      [`${soon.count} commands 1 to 12 s after the one before`]: soon.text,
      [`${late.count} commands 40 to 110 s after the one before`]: late.text,
    });
    const gone = once(chromium, "exit");
    chromium.kill();
    await gone;
    expect(device.seen.map(({ change }) => change)).toEqual(["ONLINE"]);
    expect(after.opened - before.opened).toBe(1);
    expect(after.missed - before.missed).toBe(0);
    expect(Math.max(0, ...took.soon, ...took.late)).toBeLessThan(atOnceMs);
  },
  startsIn + seconds * 1000 + 150_000,
);

/** Longer than the server waits for a silent device. */
const asleepMs = 60_000;

test.runIf(seconds > 0)(
  "a machine that slept, as far as a program that is stopped for a while can tell, is there again at once",
  async () => {
    if (f === undefined) {
      return;
    }
    const { browser } = f;
    await browser.down();
    const device = watch(f);
    const chromium = startAlone(browser);
    await device.online;
    const sleeps: number[] = [];
    for (let n = 0; n < 3; n++) {
      signalAll(chromium, "SIGSTOP");
      await expect.poll(() => device.seen.at(-1)?.change, { timeout: asleepMs, interval: 100 }).toBe("OFFLINE");
      signalAll(chromium, "SIGCONT");
      const begun = performance.now();
      await expect.poll(() => device.seen.at(-1)?.change, { timeout: 30_000, interval: 20 }).toBe("ONLINE");
      sleeps.push(performance.now() - begun);
    }
    await device.end();
    table("after three sleeps until the server had given the device up", { "connected again": spread(sleeps).text });
    const gone = once(chromium, "exit");
    chromium.kill();
    await gone;
    expect(Math.max(...sleeps)).toBeLessThan(10_000);
  },
  6 * asleepMs,
);

async function counts({ server }: Fixture) {
  const [opened, standing, missed, calls] = await Promise.all(
    [
      "throwbar_links_opened_total",
      "throwbar_links",
      "throwbar_link_heartbeats_missed_total",
      "throwbar_calls_total",
    ].map((name) => server.metrics(name)),
  );
  const sum = (metric: Map<string, number> | undefined, label = "") =>
    [...(metric ?? [])].reduce((all, [labels, value]) => (labels.includes(label) ? all + value : all), 0);
  return {
    opened: sum(opened),
    standing: sum(standing),
    missed: sum(missed),
    reports: sum(calls, "DeviceService/Report"),
  };
}
