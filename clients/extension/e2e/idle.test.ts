/**
 * Hours in which nothing happens: the browser stops the worker every half minute, which must not cost the link. A debugger would
 * keep the worker alive, so nothing is attached, and it takes real time: it runs only where THROWBAR_SOAK_SECONDS says how long.
 */
import { once } from "node:events";
import { DeviceChange } from "@throwbar/es/pb/commands";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Fixture, resultOf } from "./harness/fixture.js";
import { startProgram } from "./harness/process.js";

const seconds = Number(process.env.THROWBAR_SOAK_SECONDS ?? 0);
const startsIn = 60_000;
let f: Fixture | undefined;

beforeAll(async () => {
  f = seconds > 0 ? await Fixture.start() : undefined;
});

afterAll(async () => {
  await f?.stop();
});

test.runIf(seconds > 0)(
  "the link stands through workers that come and go",
  async () => {
    if (f === undefined) {
      return;
    }
    const { api, browser, deviceId } = f;
    await browser.down();
    const stop = new AbortController();
    const seen: string[] = [];
    const chromium = startProgram(browser.program, [
      "--headless=new",
      `--user-data-dir=${browser.profile}`,
      ...browser.args,
      "about:blank",
    ]);
    try {
      const events = api.commands.watchEvents({ deviceId }, { signal: stop.signal });
      const timer = setTimeout(() => stop.abort(), startsIn + seconds * 1000);
      for await (const { event } of events) {
        if (event?.kind.case !== "device") {
          continue;
        }
        seen.push(DeviceChange[event.kind.value.change]);
        if (event.kind.value.change === DeviceChange.ONLINE) {
          clearTimeout(timer);
          setTimeout(() => stop.abort(), seconds * 1000);
        }
      }
    } catch {
      // The time is over.
    }
    expect(seen).toEqual(["ONLINE"]);
    const { outcomes } = await api.commands.dispatch({
      deviceIds: [deviceId],
      action: { kind: { case: "getActiveTab", value: {} } },
    });
    expect(outcomes.map((outcome) => resultOf<"getActiveTab">(outcome).url)).toEqual(["about:blank"]);
    const gone = once(chromium, "exit");
    chromium.kill();
    await gone;
  },
  startsIn + seconds * 1000 + 30_000,
);
