import { expect, test } from "vitest";
import type { LinkState, LinkStatus } from "../src/bridge/messages.js";
import { stateTexts } from "../src/bridge/status.js";
import { connection } from "../src/panel/connection.js";

const now = 1_000_000;

function link(state: LinkState, change: Partial<LinkStatus> = {}): LinkStatus {
  return { state, since: now - 5000, detail: "", server: "http://x", name: "laptop", paused: false, ...change };
}

test.each<[LinkStatus | undefined, string, string | undefined]>([
  [undefined, "Connecting…", undefined],
  [link("connecting"), "Connecting…", undefined],
  [link("online"), "Connected", undefined],
  [link("waiting"), "Reconnecting", "reconnect"],
  [link("waiting", { retryAt: now + 4200 }), "Reconnecting in 5 s", "reconnect"],
  [link("waiting", { retryAt: now - 1 }), "Reconnecting now", "reconnect"],
  [link("offline", { retryAt: now + 65_000 }), "Offline, next try in 1 min 05 s", "reconnect"],
  [link("replaced"), "Taken over", "reconnect"],
  [link("refused"), "Refused", "settings"],
  [link("revoked"), "Revoked", "settings"],
  [link("unpaired"), "Not paired", "settings"],
  [link("online", { paused: true }), "Paused", "resume"],
  [link("offline", { paused: true }), "Paused", "resume"],
  // A browser that is no device any more has nothing to resume.
  [link("revoked", { paused: true }), "Revoked", "settings"],
])("%j: %s, and %s helps", (status, text, remedy) => {
  expect(connection(status, now)).toMatchObject({ text, remedy });
});

test("each bad state says what it means and what to do, and looks other than the good one", () => {
  const good = connection(link("online"), now);
  for (const state of Object.keys(stateTexts) as LinkState[]) {
    const said = connection(link(state), now);
    if (said.remedy !== undefined) {
      expect(said.advice.length, state).toBeGreaterThan(40);
      expect(said.sign, state).not.toBe(good.sign);
    }
  }
  expect(connection(link("offline", { paused: true }), now).advice).toContain(
    "Offline: The server has not been reached",
  );
});
