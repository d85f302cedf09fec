/** Cases of commands that arrange tabs: show, reload, mute, pin, group, move, and open without taking the focus. */
import { ItemStatus } from "@throwbar/es/pb/state";
import type { CommandCase } from "../case.js";
import type { CommandStage } from "../stage.js";
import { groupingCases } from "./grouping.js";
import { movingCases } from "./moving.js";
import { told } from "./told.js";

/** An id that no tab has. */
const unknown = 2_147_483_000;

/** The windows that have the focus. A headless browser lets several have it at a time. */
async function focused(stage: CommandStage): Promise<string[]> {
  await stage.view();
  const windows = await stage.browser.windows.list();
  return windows.flatMap(({ id, focused: has }) => (has ? [stage.names.window(id)] : []));
}

async function details(stage: CommandStage, kind: Parameters<CommandStage["deliver"]>[0], short = false) {
  const { outcome } = await stage.deliver(kind, { short });
  const value = outcome.case === "result" ? outcome.value.kind.value : undefined;
  return value !== undefined && "items" in value
    ? value.items.map(({ status, detail }) => `${ItemStatus[status]}: ${detail}`)
    : outcome.value;
}

const showingCases: readonly CommandCase[] = [
  {
    id: "activate-no-focus",
    title: "activateTab in a window that does not have the focus",
    source: "7",
    chromium: "Shows the tab; the focus stays.",
    ours: "Activated, and no side effects.",
    run: async (stage) => {
      const b = await stage.openWindow("b");
      const c = await stage.open("c", { in: await stage.windowOf(b) });
      return [
        await told(stage, { case: "activateTab", value: { tabId: stage.tabId(c) } }),
        await focused(stage),
        await stage.view(),
      ];
    },
    expected: [{ activated: true }, ["home"], { home: ["home active"], w2: ["b", "c active"] }],
  },
  {
    id: "activate-old-id",
    title: "activateTab of a tab that was put to sleep, by its old id",
    source: "3",
    chromium: "Does not know the old id; showing the tab wakes it.",
    ours: "The command follows the mapping.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.sleep(a);
      return [await told(stage, { case: "activateTab", value: { tabId: stage.tabId(a) } }), (await stage.view()).home];
    },
    expected: [{ activated: true }, ["home", "a active"]],
  },
  {
    id: "activate-gone",
    title: "activateTab of a tab that is gone, and of an earlier start of the browser",
    source: "3",
    chromium: "Refuses.",
    ours: "NOT_FOUND.",
    run: async (stage) => {
      const a = await stage.open("a");
      return [
        await told(stage, { case: "activateTab", value: { tabId: stage.tabId(unknown) } }),
        await told(stage, { case: "activateTab", value: { tabId: stage.staleId(a) } }),
      ];
    },
    expected: ["NOT_FOUND", "NOT_FOUND"],
  },
  {
    id: "activate-focus",
    title: "activateTab with focusWindow in a window that does not have the focus",
    source: "7",
    chromium: "Shows the tab, and gives the window the focus when it is asked for that, a moment later.",
    ours: "Both, read back; the window that took the focus is named.",
    run: async (stage) => {
      const b = await stage.openWindow("b");
      const c = await stage.open("c", { in: await stage.windowOf(b) });
      const value = { tabId: stage.tabId(c), focusWindow: true };
      return [await told(stage, { case: "activateTab", value }), (await focused(stage)).includes("w2")];
    },
    expected: [{ activated: true, sideEffects: { focusedWindowId: "w2" } }, true],
  },
  {
    id: "open-no-focus",
    title: "openTab in a window that does not have the focus, to be shown there",
    source: "7",
    chromium: "Creating a tab in front gives its window the focus; showing one that was created behind does not.",
    ours: "Created behind and then shown: it is in front of its window, and the focus stays.",
    run: async (stage) => {
      const windowId = stage.windowId(await stage.windowOf(await stage.openWindow("b")));
      return [
        await told(stage, { case: "openTab", value: { url: "http://c.test/", windowId } }),
        await focused(stage),
        await stage.view(),
      ];
    },
    expected: [{ tabId: "c", url: "http://c.test/" }, ["home"], { home: ["home active"], w2: ["b", "c active"] }],
  },
  {
    id: "open-front",
    title: "openTab without a window",
    source: "7",
    chromium: "Has a window that was in front last.",
    ours: "In that window and in front of it.",
    run: async (stage) => {
      await stage.openWindow("b");
      return [await told(stage, { case: "openTab", value: { url: "http://c.test/" } }), await stage.view()];
    },
    expected: [
      { tabId: "c", url: "http://c.test/" },
      { home: ["home", "c active"], w2: ["b active"] },
    ],
  },
  {
    id: "open-window-gone",
    title: "openTab in a window that closed, and in a popup",
    source: "tried here",
    chromium: "Refuses the one; opens a tab for the other in some other window.",
    ours: "NOT_FOUND and FAILED; nothing is opened.",
    run: async (stage) => {
      const [b, p] = [await stage.openWindow("b"), await stage.openWindow("p", "popup")];
      const [gone, popup] = [stage.windowId(await stage.windowOf(b)), stage.windowId(await stage.windowOf(p))];
      await stage.world.close(b);
      return [
        await told(stage, { case: "openTab", value: { url: "http://c.test/", windowId: gone } }),
        await told(stage, { case: "openTab", value: { url: "http://c.test/", windowId: popup } }),
        await stage.view(),
      ];
    },
    expected: ["NOT_FOUND", "FAILED", { home: ["home active"], "w3 popup": ["p active"] }],
  },
  {
    id: "open-refused",
    title: "openTab of addresses that the browser swallows or makes something else of",
    source: "8",
    chromium:
      "Leaves an empty tab for ftp, one that vanishes for mailto, an empty one for more than two million characters, and the extension's own page for no address.",
    ours: "Refused before anything is opened.",
    run: async (stage) => {
      const answers: unknown[] = [];
      for (const url of [
        "ftp://a.test/",
        "mailto:a@b.test",
        "not an address",
        "chrome://version/",
        "data:text/plain,x",
      ]) {
        answers.push(await told(stage, { case: "openTab", value: { url } }));
      }
      answers.push(await told(stage, { case: "openTab", value: { url: `http://a.test/${"x".repeat(9000)}` } }));
      return [answers, await stage.view()];
    },
    expected: [["REFUSED", "REFUSED", "REFUSED", "REFUSED", "REFUSED", "INVALID"], { home: ["home active"] }],
  },
  {
    id: "mute",
    title: "muteTabs of a tab, of one that sleeps, and of one that is gone",
    source: "17",
    chromium: "Mutes both and does not wake the one.",
    ours: "Counts what is muted now; nothing else changes.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      const asleep = await stage.sleep(b);
      const tabIds = [a, asleep, unknown].map((id) => stage.tabId(id));
      return [
        await told(stage, { case: "muteTabs", value: { tabIds, muted: true } }),
        (await stage.view()).home,
        await told(stage, { case: "muteTabs", value: { tabIds: tabIds.slice(0, 1), muted: false } }),
        (await stage.view()).home,
      ];
    },
    expected: [
      { mutedCount: 2, items: ["a OK", "b OK", `tab ${unknown} NOT_FOUND`] },
      ["home active", "a muted", "b muted asleep"],
      { mutedCount: 1, items: ["a OK"] },
      ["home active", "a", "b muted asleep"],
    ],
  },
  {
    id: "reload-asleep",
    title: "reloadTabs of a tab, of one that sleeps, and of one that is gone",
    source: "17",
    chromium: "Wakes the one that sleeps.",
    ours: "OK, and the item says that it was asleep.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      const asleep = await stage.sleep(b);
      const tabIds = [a, asleep, unknown].map((id) => stage.tabId(id));
      return [await details(stage, { case: "reloadTabs", value: { tabIds } }), (await stage.view()).home];
    },
    expected: [
      ["OK: ", "OK: it was asleep, and is awake now", "NOT_FOUND: "],
      ["home active", "a", "b"],
    ],
  },
  {
    id: "reload-guarded",
    title: "reloadTabs of a tab whose page asks, together with one that does not",
    source: "2",
    chromium: "Says yes to both, brings the one that asks to the front, and leaves it until the person has answered.",
    ours: "BLOCKED_BY_PAGE by the deadline, as it came to the front and nothing was loaded; the other one OK.",
    run: async (stage) => {
      const [g, a] = [await stage.openGuarded("g"), await stage.open("a")];
      const value = { tabIds: [stage.tabId(g), stage.tabId(a)] };
      return [await told(stage, { case: "reloadTabs", value }, { short: true }), (await stage.view()).home];
    },
    expected: [{ reloadedCount: 1, items: ["g/guard BLOCKED_BY_PAGE", "a OK"] }, ["home", "g/guard active", "a"]],
  },
  {
    id: "reload-guarded-in-front",
    title: "reloadTabs of the tab in front, whose page asks",
    source: "2",
    chromium: "Looks just like a tab whose server is slow.",
    ours: "UNKNOWN_OUTCOME by the deadline.",
    run: async (stage) => {
      const g = await stage.openGuarded("g");
      await stage.browser.tabs.update(g, { active: true });
      return told(stage, { case: "reloadTabs", value: { tabIds: [stage.tabId(g)] } }, { short: true });
    },
    expected: { reloadedCount: 0, items: ["g/guard UNKNOWN_OUTCOME"] },
  },
  {
    id: "navigate-guarded",
    title: "navigateTab of a tab whose page asks",
    source: "2",
    chromium: "Says yes at once, brings the tab to the front, and leaves the page only if the person agrees.",
    ours: "FAILED by the deadline, with what the tab still shows; never told to be there.",
    run: async (stage) => {
      const g = await stage.openGuarded("g");
      const value = { tabId: stage.tabId(g), url: "http://b.test/" };
      const answer = await told(stage, { case: "navigateTab", value }, { short: true });
      const tab = await stage.browser.tabs.get(g);
      return [answer, tab?.url, tab?.active];
    },
    expected: ["FAILED", "http://g.test/guard", true],
  },
  {
    id: "navigate-guarded-twice",
    title: "navigateTab of a tab whose page asks already, to another address",
    source: "2",
    chromium: "Goes on asking; the page is not lost.",
    ours: "INTERRUPTED: nothing tells a page that asks from a server that is slow; the page is still there.",
    run: async (stage) => {
      const g = await stage.openGuarded("g");
      const to = (url: string) =>
        told(stage, { case: "navigateTab", value: { tabId: stage.tabId(g), url } }, { short: true });
      return [await to("http://b.test/"), await to("http://c.test/"), (await stage.browser.tabs.get(g))?.url];
    },
    expected: ["FAILED", "INTERRUPTED", "http://g.test/guard"],
  },
  {
    id: "navigate-stay",
    title: "navigateTab of a tab whose page asks, and the person stays",
    source: "2",
    chromium: "Drops the new address without an event.",
    ours: "FAILED, with what the tab still shows.",
    run: async (stage) => {
      const g = await stage.openGuarded("g");
      const value = { tabId: stage.tabId(g), url: "http://b.test/" };
      const answer = told(stage, { case: "navigateTab", value });
      await stage.world.asked();
      await stage.world.answer("stay");
      return [await answer, (await stage.browser.tabs.get(g))?.url];
    },
    expected: ["FAILED", "http://g.test/guard"],
  },
  {
    id: "navigate-leave",
    title: "navigateTab of a tab whose page asks, and the person agrees",
    source: "2",
    chromium: "Goes there.",
    ours: "The address.",
    run: async (stage) => {
      const g = await stage.openGuarded("g");
      const answer = told(stage, {
        case: "navigateTab",
        value: { tabId: stage.tabId(g), url: "http://b.test/" },
      });
      await stage.world.asked();
      await stage.world.answer("leave");
      return [await answer, (await stage.browser.tabs.get(g))?.url];
    },
    expected: [{ url: "http://b.test/" }, "http://b.test/"],
  },
  {
    id: "navigate-asleep",
    title: "navigateTab of a tab that sleeps",
    source: "17",
    chromium: "Wakes it with the new page, under the same id.",
    ours: "The address.",
    run: async (stage) => {
      const asleep = await stage.sleep(await stage.open("a"));
      const value = { tabId: stage.tabId(asleep), url: "http://b.test/" };
      return [await told(stage, { case: "navigateTab", value }), (await stage.view()).home];
    },
    expected: [{ url: "http://b.test/" }, ["home active", "b"]],
  },
  {
    id: "active-tab",
    title: "getActiveTab with a window behind",
    source: "7",
    chromium: "Has one window that was in front last.",
    ours: "The tab in front of that one.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.openWindow("b");
      await stage.browser.tabs.update(a, { active: true });
      const answer = (await stage.command({ case: "getActiveTab", value: {} })) as { tabId: string; url: string };
      return [answer.tabId, answer.url];
    },
    expected: ["a", "http://a.test/"],
  },
  {
    id: "hanging-move",
    title: "A command whose call hangs, and two others meanwhile",
    source: "2",
    chromium: "Answers other calls.",
    ours: "The others are done at once; the one is UNKNOWN_OUTCOME by its own deadline.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      await stage.world.hang("move", "before");
      const hangs = told(stage, { case: "moveTabs", value: { tabIds: [stage.tabId(a)] } }, { short: true });
      await stage.world.hanging();
      return [
        await told(stage, { case: "muteTabs", value: { tabIds: [stage.tabId(b)], muted: true } }),
        await told(stage, { case: "moveTabs", value: { tabIds: [stage.tabId(b)], index: 0 } }),
        await hangs,
      ];
    },
    expected: [
      { mutedCount: 1, items: ["b OK"] },
      { movedCount: 1, items: ["b OK"] },
      { movedCount: 0, items: ["a UNKNOWN_OUTCOME"] },
    ],
  },
  {
    id: "dragged",
    title: "Commands while a person drags a tab",
    source: "15",
    chromium: "Refuses calls that change tabs until the person lets go.",
    ours: "Tried again for a second and a half; then BUSY, and nothing was done.",
    fakeOnly: "nobody can drag a tab in a headless browser",
    run: async (stage) => {
      const a = await stage.open("a");
      const tabIds = [stage.tabId(a)];
      stage.world.drag(3);
      const short = await told(stage, { case: "moveTabs", value: { tabIds, index: 0 } });
      stage.world.drag(1000);
      const answers = await Promise.all([
        told(stage, { case: "moveTabs", value: { tabIds } }),
        told(stage, { case: "pinTabs", value: { tabIds, pinned: true } }),
        told(stage, { case: "muteTabs", value: { tabIds, muted: true } }),
        told(stage, { case: "groupTabs", value: { tabIds } }),
        told(stage, { case: "activateTab", value: { tabId: stage.tabId(a) } }),
        told(stage, { case: "navigateTab", value: { tabId: stage.tabId(a), url: "http://b.test/" } }),
        told(stage, { case: "openTab", value: { url: "http://c.test/" } }),
      ]);
      return [short, answers, (await stage.view()).home];
    },
    expected: [
      { movedCount: 1, items: ["a OK"] },
      [
        { movedCount: 0, items: ["a BUSY"] },
        { pinnedCount: 0, items: ["a BUSY"] },
        { mutedCount: 0, items: ["a BUSY"] },
        "BUSY",
        "BUSY",
        "BUSY",
        "BUSY",
      ],
      ["a", "home active"],
    ],
  },
];

export const arrangeCases: readonly CommandCase[] = [...showingCases, ...groupingCases, ...movingCases];
