/** The link's states: the table, and that the docs have the same one. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { badge } from "../src/bridge/badge.js";
import type { LinkState, LinkStatus } from "../src/bridge/messages.js";
import { stateTexts, statusNote } from "../src/bridge/status.js";
import { after, type LinkEvent, resting, transitions } from "../src/link/states.js";

const states = Object.keys(transitions) as LinkState[];
const events: readonly LinkEvent[] = [
  "asked",
  "welcomed",
  "lost",
  "unreachable",
  "refused",
  "replaced",
  "revoked",
  "unpaired",
];

test("the docs have the table that the code has", async () => {
  const docs = await readFile(fileURLToPath(new URL("../../../docs/browser-link.md", import.meta.url)), "utf8");
  const rows = docs.split("\n").filter((line) => line.startsWith("| ") && line.endsWith(" |"));
  const cells = rows.map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const head = cells.findIndex((row) => row[0] === "state");
  expect(cells[head]).toEqual(["state", ...events]);
  const documented = Object.fromEntries(
    cells.slice(head + 2, head + 2 + states.length).map(([name, ...to]) => [name, to]),
  );
  const coded = Object.fromEntries(
    states.map((state) => [state, events.map((event) => transitions[state][event] ?? "")]),
  );
  expect(documented).toEqual(coded);
});

test("every state can be reached, left by asking, and has its words", () => {
  const reached = new Set<LinkState>(["connecting"]);
  for (let before = 0; before !== reached.size; ) {
    before = reached.size;
    for (const state of [...reached]) {
      for (const event of events) {
        reached.add(after(state, event));
      }
    }
  }
  expect([...reached].sort()).toEqual([...states].sort());
  for (const state of states) {
    expect(after(state, "asked")).toBe("connecting");
    expect(stateTexts[state]).toMatch(/[.…]$/);
  }
});

test("a device that rests does nothing until it is asked, and nothing else rests", () => {
  for (const state of states) {
    const others = events.filter((event) => event !== "asked");
    const stays = others.every((event) => after(state, event) === state);
    expect(stays).toBe(resting.has(state));
  }
});

const status = (state: LinkState, more: Partial<LinkStatus> = {}): LinkStatus => ({
  state,
  since: 0,
  detail: "",
  server: "http://127.0.0.1:3913",
  name: "laptop",
  paused: false,
  ...more,
});

test("the icon says nothing where all is well, and names server, device and round trip to who asks", () => {
  expect(badge(status("online", { roundTripMs: 4 }))).toMatchObject({
    text: "",
    title: "Throwbar\nConnected.\nlaptop at http://127.0.0.1:3913, 4 ms",
  });
  expect(badge(undefined)).toMatchObject({ text: "…", title: "Throwbar\nConnecting…" });
});

test.each([
  ["connecting", "…", "…"],
  ["online", "", "❚❚"],
  ["waiting", "…", "❚❚"],
  ["offline", "off", "❚❚"],
  ["unpaired", "pair", "pair"],
  // What a person has to see to goes first.
  ["replaced", "!", "!"],
  ["refused", "!", "!"],
  ["revoked", "!", "!"],
] as const)("the icon in the state %s: %j, paused %j", (state, text, paused) => {
  expect(badge(status(state)).text).toBe(text);
  expect(badge(status(state, { paused: true })).text).toBe(state === "connecting" ? "❚❚" : paused);
  expect(badge(status(state)).text.length).toBeLessThanOrEqual(4);
});

test("the note says how fast the server is, or when it is tried next", () => {
  expect(statusNote(status("online", { roundTripMs: 12 }), 0)).toMatch(/^Since .*, round trip 12 ms\.$/);
  expect(statusNote(status("waiting", { retryAt: 4100 }), 0)).toBe("Next attempt in 5 seconds.");
  expect(statusNote(status("waiting", { retryAt: 1000 }), 0)).toBe("Next attempt in 1 second.");
  expect(statusNote(status("offline", { retryAt: 1000 }), 2000)).toBe("Trying now.");
  expect(statusNote(status("replaced"), 0)).toBe("");
});
