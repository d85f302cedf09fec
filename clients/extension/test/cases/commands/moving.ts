/** Cases of moveTabs. */
import type { CommandCase } from "../case.js";
import type { CommandStage } from "../stage.js";
import { told } from "./told.js";

/** An id that no tab has. */
const unknown = 2_147_483_000;

async function five(stage: CommandStage): Promise<[number, number, number, number, number]> {
  return [
    await stage.open("a"),
    await stage.open("b"),
    await stage.open("c"),
    await stage.open("d"),
    await stage.open("e"),
  ];
}

function move(stage: CommandStage, ids: readonly number[], more: { index?: number; windowId?: string } = {}) {
  return told(stage, { case: "moveTabs", value: { tabIds: ids.map((id) => stage.tabId(id)), ...more } });
}

export const movingCases: readonly CommandCase[] = [
  {
    id: "move-order",
    title: "moveTabs puts tabs from both sides of a place there, in the order wanted",
    source: "tried here",
    chromium: "Each move shifts the places of the others.",
    ours: "They stand side by side in the order of the command, each moved once.",
    run: async (stage) => {
      const [a, , , , e] = await five(stage);
      return [await move(stage, [e, a], { index: 3 }), (await stage.view()).home];
    },
    expected: [{ movedCount: 2, items: ["e OK", "a OK"] }, ["home active", "b", "c", "e", "a", "d"]],
  },
  {
    id: "move-end",
    title: "moveTabs without a place, and with one past the end",
    source: "tried here",
    chromium: "Puts it at the end.",
    ours: "OK; a place past the end is the end.",
    run: async (stage) => {
      const [a, b] = await five(stage);
      return [await move(stage, [a]), await move(stage, [b], { index: 500 }), (await stage.view()).home];
    },
    expected: [
      { movedCount: 1, items: ["a OK"] },
      { movedCount: 1, items: ["b OK"] },
      ["home active", "c", "d", "e", "a", "b"],
    ],
  },
  {
    id: "move-pinned-border",
    title: "moveTabs of a pinned tab to the end, and of another one to the front",
    source: "tried here",
    chromium: "Pinned tabs stay in front of the others; no error.",
    ours: "OK as near as the browser allows; the item says where it is.",
    run: async (stage) => {
      const [a, b, c] = await five(stage);
      await stage.browser.tabs.update(a, { pinned: true });
      await stage.browser.tabs.update(b, { pinned: true });
      return [await move(stage, [a]), await move(stage, [c], { index: 0 }), (await stage.view()).home];
    },
    expected: [
      { movedCount: 1, items: ["a OK"] },
      { movedCount: 1, items: ["c OK"] },
      ["b pinned", "a pinned", "c", "home active", "d", "e"],
    ],
  },
  {
    id: "move-last-tab",
    title: "moveTabs of a window's only tab to another window",
    source: "5",
    chromium: "Closes the window; the focus stays where it is.",
    ours: "The window that closed is a side effect.",
    run: async (stage) => {
      const b = await stage.openWindow("b");
      return [await move(stage, [b], { windowId: stage.windowId(await stage.home()), index: 0 }), await stage.view()];
    },
    expected: [
      { movedCount: 1, items: ["b OK"], sideEffects: { closedWindowIds: ["w2"] } },
      { home: ["b", "home active"] },
    ],
  },
  {
    id: "move-whole-window",
    title: "moveTabs of all tabs of a window, two of them in a group and one pinned",
    source: "5",
    chromium: "Unpins the one, takes the two out of their group and removes it, and closes the window.",
    ours: "All of that are side effects; that they moved is what was asked.",
    run: async (stage) => {
      const p = await stage.openWindow("p");
      const windowId = await stage.windowOf(p);
      const [a, b] = [await stage.open("a", { in: windowId }), await stage.open("b", { in: windowId })];
      await stage.browser.tabs.update(p, { pinned: true });
      stage.names.seeGroup(await stage.browser.tabs.group([a, b], { windowId }));
      return [await move(stage, [p, a, b], { windowId: stage.windowId(await stage.home()) }), await stage.view()];
    },
    expected: [
      {
        movedCount: 3,
        items: ["p OK", "a OK", "b OK"],
        sideEffects: {
          closedWindowIds: ["w2"],
          removedGroupIds: ["g1"],
          ungroupedTabIds: ["a", "b"],
          unpinnedTabIds: ["p"],
        },
      },
      { home: ["home active", "p", "a", "b"] },
    ],
  },
  {
    id: "move-active",
    title: "moveTabs of the tab in front of its window to another window",
    source: "7",
    chromium: "Its neighbour comes to the front; where it went it stays behind, and no focus moves.",
    ours: "OK; nothing is activated and no focus taken.",
    run: async (stage) => {
      const b = await stage.openWindow("b");
      await stage.open("c", { in: await stage.windowOf(b) });
      return [await move(stage, [b], { windowId: stage.windowId(await stage.home()) }), await stage.view()];
    },
    expected: [
      { movedCount: 1, items: ["b OK"] },
      { home: ["home active", "b"], w2: ["c active"] },
    ],
  },
  {
    id: "move-out-of-group-command",
    title: "moveTabs of one of three tabs of a group to the end",
    source: "6",
    chromium: "Takes it out of the group.",
    ours: "That it left the group is a side effect.",
    run: async (stage) => {
      const [a, b, c] = await five(stage);
      await stage.browser.tabs.group([a, b, c], { windowId: await stage.home() });
      return [await move(stage, [b]), (await stage.view()).home];
    },
    expected: [
      { movedCount: 1, items: ["b OK"], sideEffects: { ungroupedTabIds: ["b"] } },
      ["home active", "a in g1", "c in g1", "d", "e", "b"],
    ],
  },
  {
    id: "move-within-group",
    title: "moveTabs of two tabs within their group",
    source: "6",
    chromium: "They stay in the group as long as each is beside or between tabs of it.",
    ours: "They are moved without a detour, so that they stay in it.",
    run: async (stage) => {
      const [a, b, c, d] = await five(stage);
      await stage.browser.tabs.group([a, b, c, d], { windowId: await stage.home() });
      return [await move(stage, [c, b], { index: 2 }), (await stage.view()).home];
    },
    expected: [
      { movedCount: 2, items: ["c OK", "b OK"] },
      ["home active", "a in g1", "c in g1", "b in g1", "d in g1", "e"],
    ],
  },
  {
    id: "move-into-group-command",
    title: "moveTabs of a tab in between the tabs of a group",
    source: "6",
    chromium: "It joins the group without a word.",
    ours: "OK; the item says that it joined the group.",
    run: async (stage) => {
      const [a, b, c] = await five(stage);
      await stage.browser.tabs.group([a, b], { windowId: await stage.home() });
      const { outcome } = await stage.deliver({ case: "moveTabs", value: { tabIds: [stage.tabId(c)], index: 2 } });
      const value = outcome.case === "result" ? outcome.value.kind.value : undefined;
      const details = value !== undefined && "items" in value ? value.items.map(({ detail }) => detail) : [];
      return [details, (await stage.view()).home];
    },
    expected: [["it joined the group that it stands in"], ["home active", "a in g1", "c in g1", "b in g1", "d", "e"]],
  },
  {
    id: "move-into-group-of-other-window",
    title: "moveTabs of a tab of another window in between the tabs of a group",
    source: "6",
    chromium: "Refuses, as the group would be in two pieces.",
    ours: "It goes to that window's end first and then in between, where it joins the group, as within one window.",
    run: async (stage) => {
      const [a, b] = await five(stage);
      await stage.browser.tabs.group([a, b], { windowId: await stage.home() });
      const x = await stage.openWindow("x");
      await stage.open("y", { in: await stage.windowOf(x) });
      const answer = await move(stage, [x], { windowId: stage.windowId(await stage.home()), index: 2 });
      return [answer, (await stage.view()).home];
    },
    expected: [{ movedCount: 1, items: ["x OK"] }, ["home active", "a in g1", "x in g1", "b in g1", "c", "d", "e"]],
  },
  {
    id: "move-out-of-popup",
    title: "moveTabs of a popup's tab into a normal window",
    source: "6",
    chromium: "Moves it and closes the popup.",
    ours: "OK; the popup that closed is a side effect.",
    run: async (stage) => {
      const p = await stage.openWindow("p", "popup");
      return [await move(stage, [p], { windowId: stage.windowId(await stage.home()) }), await stage.view()];
    },
    expected: [
      { movedCount: 1, items: ["p OK"], sideEffects: { closedWindowIds: ["w2"] } },
      { home: ["home active", "p"] },
    ],
  },
  {
    id: "move-into-popup",
    title: "moveTabs into a popup",
    source: "6",
    chromium: "Refuses.",
    ours: "FAILED before anything is done.",
    run: async (stage) => {
      const [a, p] = [await stage.open("a"), await stage.openWindow("p", "popup")];
      return [await move(stage, [a], { windowId: stage.windowId(await stage.windowOf(p)) }), await stage.view()];
    },
    expected: ["FAILED", { home: ["home active", "a"], "w2 popup": ["p active"] }],
  },
  {
    id: "move-window-gone",
    title: "moveTabs into a window that closed before",
    source: "tried here",
    chromium: "Refuses.",
    ours: "NOT_FOUND before anything is done.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.openWindow("b")];
      const windowId = stage.windowId(await stage.windowOf(b));
      await stage.world.close(b);
      return [await move(stage, [a], { windowId }), await stage.view()];
    },
    expected: ["NOT_FOUND", { home: ["home active", "a"] }],
  },
  {
    id: "move-gone-tab",
    title: "moveTabs with one that is gone, and the same one twice",
    source: "1",
    chromium: "Refuses the call for the one that is gone.",
    ours: "NOT_FOUND for that one; the others are moved once.",
    run: async (stage) => {
      const [a, b] = await five(stage);
      return [await move(stage, [a, unknown, b, a], { index: 3 }), (await stage.view()).home];
    },
    expected: [
      { movedCount: 2, items: ["a OK", `tab ${unknown} NOT_FOUND`, "b OK"] },
      ["home active", "c", "d", "a", "b", "e"],
    ],
  },
  {
    id: "move-guarded",
    title: "moveTabs of a tab whose page asks before it is left",
    source: "2",
    chromium: "Moves it; the page asks nothing.",
    ours: "OK; what was typed there is untouched.",
    run: async (stage) => {
      const [g, b] = [await stage.openGuarded("g"), await stage.openWindow("b")];
      return [await move(stage, [g], { windowId: stage.windowId(await stage.windowOf(b)) }), await stage.view()];
    },
    expected: [
      { movedCount: 1, items: ["g/guard OK"] },
      { home: ["home active"], w2: ["b active", "g/guard"] },
    ],
  },
  {
    id: "move-asleep",
    title: "moveTabs of a tab that was put to sleep, by its old id",
    source: "3",
    chromium: "Moves it and does not wake it.",
    ours: "OK with the id that it has now; it sleeps on.",
    run: async (stage) => {
      const [a] = [await stage.open("a"), await stage.open("b")];
      await stage.sleep(a);
      return [await move(stage, [a]), (await stage.view()).home];
    },
    expected: [{ movedCount: 1, items: ["a OK as a"] }, ["home active", "b", "a asleep"]],
  },
  {
    id: "move-worker-stopped",
    title: "moveTabs of a window's only tab, and the worker is stopped right after the browser did it",
    source: "11",
    chromium: "Has moved the tab and closed the window; nobody heard of it.",
    ours: "The next worker reads that it is done, and says which window closed; nothing is done twice.",
    run: async (stage) => {
      const b = await stage.openWindow("b");
      await stage.world.hang("move", "after");
      const value = { tabIds: [stage.tabId(b)], windowId: stage.windowId(await stage.home()), index: 0 };
      const answer = told(stage, { case: "moveTabs", value });
      await stage.world.hanging();
      await stage.world.stopWorker();
      return [await answer, await stage.view()];
    },
    expected: [
      { movedCount: 1, items: ["b OK"], sideEffects: { closedWindowIds: ["w2"] } },
      { home: ["b", "home active"] },
    ],
  },
];
