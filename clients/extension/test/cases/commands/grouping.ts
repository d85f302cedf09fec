/** Cases of groupTabs, ungroupTabs and pinTabs. */
import { Colour } from "@throwbar/es/pb/state";
import type { CommandCase } from "../case.js";
import { told } from "./told.js";

/** An id that no tab has. */
const unknown = 2_147_483_000;

export const groupingCases: readonly CommandCase[] = [
  {
    id: "group-plain",
    title: "groupTabs of two tabs of one window, with title and colour",
    source: "5",
    chromium: "Puts the two side by side where the first one is; the tab in front and the focus stay.",
    ours: "The group's id and a count; no side effects.",
    run: async (stage) => {
      const [a, , b] = [await stage.open("a"), await stage.open("x"), await stage.open("b")];
      const tabIds = [stage.tabId(a), stage.tabId(b)];
      return [
        await told(stage, { case: "groupTabs", value: { tabIds, title: "work", colour: Colour.CYAN } }),
        await stage.view(),
      ];
    },
    expected: [
      { groupId: "g1", groupedCount: 2, items: ["a OK", "b OK"] },
      { home: ["home active", "a in g1", "b in g1", "x"], groups: ['g1 of home: "work" cyan'] },
    ],
  },
  {
    id: "group-empty-title",
    title: "groupTabs with an empty title",
    source: "tried here",
    chromium: "A group without a name.",
    ours: "As asked.",
    run: async (stage) => {
      const a = await stage.open("a");
      const value = { tabIds: [stage.tabId(a)], title: "", colour: Colour.RED };
      return [await told(stage, { case: "groupTabs", value }), await stage.view()];
    },
    expected: [
      { groupId: "g1", groupedCount: 1, items: ["a OK"] },
      { home: ["home active", "a in g1"], groups: ['g1 of home: "" red'] },
    ],
  },
  {
    id: "group-two-windows",
    title: "groupTabs of tabs of two windows without a window",
    source: "5",
    chromium: "Moves them all to the window that was in front last, and closes one that is empty then.",
    ours: "INVALID before anything is done; the text says to give windowId.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.openWindow("b")];
      const tabIds = [stage.tabId(a), stage.tabId(b)];
      return [await told(stage, { case: "groupTabs", value: { tabIds } }), await stage.view()];
    },
    expected: ["INVALID", { home: ["home active", "a"], w2: ["b active"] }],
  },
  {
    id: "group-into-window",
    title: "groupTabs of tabs of two windows into one of them",
    source: "5",
    chromium: "Moves the tab, closes the window that is empty then, and leaves the focus.",
    ours: "The tab that moved and the window that closed are side effects.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.openWindow("b")];
      const value = {
        tabIds: [stage.tabId(a), stage.tabId(b)],
        windowId: stage.windowId(await stage.home()),
        colour: Colour.BLUE,
      };
      return [await told(stage, { case: "groupTabs", value }), await stage.view()];
    },
    expected: [
      {
        groupId: "g1",
        groupedCount: 2,
        items: ["a OK", "b OK"],
        sideEffects: { closedWindowIds: ["w2"], movedTabIds: ["b"] },
      },
      { home: ["home active", "a in g1", "b in g1"], groups: ['g1 of home: "" blue'] },
    ],
  },
  {
    id: "group-active-of-other-window",
    title: "groupTabs of the tab that is in front of another window",
    source: "5",
    chromium: "The next tab of that window comes to its front; the moved one stays behind.",
    ours: "Nothing is activated and no focus taken; the tab that moved is a side effect.",
    run: async (stage) => {
      const b = await stage.openWindow("b");
      await stage.open("c", { in: await stage.windowOf(b) });
      const value = { tabIds: [stage.tabId(b)], windowId: stage.windowId(await stage.home()), colour: Colour.BLUE };
      return [await told(stage, { case: "groupTabs", value }), await stage.view()];
    },
    expected: [
      { groupId: "g1", groupedCount: 1, items: ["b OK"], sideEffects: { movedTabIds: ["b"] } },
      { home: ["home active", "b in g1"], w2: ["c active"], groups: ['g1 of home: "" blue'] },
    ],
  },
  {
    id: "group-pinned-command",
    title: "groupTabs with a pinned tab among them",
    source: "6",
    chromium: "Unpins it without a word.",
    ours: "SKIPPED, and the tab stays pinned.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      await stage.browser.tabs.update(a, { pinned: true });
      const tabIds = [stage.tabId(a), stage.tabId(b)];
      return [await told(stage, { case: "groupTabs", value: { tabIds, colour: Colour.RED } }), await stage.view()];
    },
    expected: [
      { groupId: "g1", groupedCount: 1, items: ["a SKIPPED", "b OK"] },
      { home: ["a pinned", "home active", "b in g1"], groups: ['g1 of home: "" red'] },
    ],
  },
  {
    id: "group-allow-unpin",
    title: "groupTabs with a pinned tab and allowUnpin",
    source: "6",
    chromium: "Unpins and groups it.",
    ours: "OK, and the tab is named as unpinned.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      await stage.browser.tabs.update(a, { pinned: true });
      const value = { tabIds: [stage.tabId(a), stage.tabId(b)], allowUnpin: true, colour: Colour.RED };
      return [await told(stage, { case: "groupTabs", value }), await stage.view()];
    },
    expected: [
      { groupId: "g1", groupedCount: 2, items: ["a OK", "b OK"], sideEffects: { unpinnedTabIds: ["a"] } },
      { home: ["a in g1", "b in g1", "home active"], groups: ['g1 of home: "" red'] },
    ],
  },
  {
    id: "group-popup-command",
    title: "groupTabs with a tab of a popup",
    source: "6",
    chromium: "Has no groups in popups.",
    ours: "UNSUPPORTED_WINDOW for that tab; the others are grouped.",
    run: async (stage) => {
      const [a, p] = [await stage.open("a"), await stage.openWindow("p", "popup")];
      const tabIds = [stage.tabId(p), stage.tabId(a)];
      return [await told(stage, { case: "groupTabs", value: { tabIds, colour: Colour.RED } }), await stage.view()];
    },
    expected: [
      { groupId: "g1", groupedCount: 1, items: ["p UNSUPPORTED_WINDOW", "a OK"] },
      { home: ["home active", "a in g1"], "w2 popup": ["p active"], groups: ['g1 of home: "" red'] },
    ],
  },
  {
    id: "group-into-popup-command",
    title: "groupTabs into a popup",
    source: "6",
    chromium: "Refuses.",
    ours: "FAILED before anything is done.",
    run: async (stage) => {
      const [a, p] = [await stage.open("a"), await stage.openWindow("p", "popup")];
      const value = { tabIds: [stage.tabId(a)], windowId: stage.windowId(await stage.windowOf(p)) };
      return [await told(stage, { case: "groupTabs", value }), await stage.view()];
    },
    expected: ["FAILED", { home: ["home active", "a"], "w2 popup": ["p active"] }],
  },
  {
    id: "group-gone-tab",
    title: "groupTabs with a tab that is gone between two others",
    source: "6",
    chromium: "Groups none of them.",
    ours: "The others are grouped, and the one is NOT_FOUND.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      const tabIds = [a, unknown, b].map((id) => stage.tabId(id));
      return [await told(stage, { case: "groupTabs", value: { tabIds, colour: Colour.RED } }), await stage.view()];
    },
    expected: [
      { groupId: "g1", groupedCount: 2, items: ["a OK", `tab ${unknown} NOT_FOUND`, "b OK"] },
      { home: ["home active", "a in g1", "b in g1"], groups: ['g1 of home: "" red'] },
    ],
  },
  {
    id: "group-window-gone",
    title: "groupTabs into a window that closed",
    source: "tried here",
    chromium: "Refuses.",
    ours: "NOT_FOUND before anything is done.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.openWindow("b")];
      const value = { tabIds: [stage.tabId(a)], windowId: stage.windowId(await stage.windowOf(b)) };
      await stage.world.close(b);
      return [await told(stage, { case: "groupTabs", value }), await stage.view()];
    },
    expected: ["NOT_FOUND", { home: ["home active", "a"] }],
  },
  {
    id: "group-out-of-groups",
    title: "groupTabs of tabs that are in two other groups, one of them alone in it",
    source: "6",
    chromium: "Takes them out of theirs, and removes the group that is empty then.",
    ours: "The tabs that left a group and the group that is gone are side effects.",
    run: async (stage) => {
      const ids = [await stage.open("a"), await stage.open("b"), await stage.open("c")];
      const [a = 0, b = 0, c = 0] = ids;
      const windowId = await stage.home();
      const g1 = await stage.browser.tabs.group([a], { windowId });
      const g2 = await stage.browser.tabs.group([b, c], { windowId });
      stage.names.seeGroup(g1);
      stage.names.seeGroup(g2);
      const tabIds = [stage.tabId(a), stage.tabId(b)];
      const answer = await told(stage, { case: "groupTabs", value: { tabIds, title: "new", colour: Colour.RED } });
      return [answer, (await stage.view()).home];
    },
    expected: [
      {
        groupId: "g3",
        groupedCount: 2,
        items: ["a OK", "b OK"],
        sideEffects: { removedGroupIds: ["g1"], ungroupedTabIds: ["a", "b"] },
      },
      ["home active", "a in g3", "b in g3", "c in g2"],
    ],
  },
  {
    id: "group-again-command",
    title: "groupTabs of all tabs of a group",
    source: "tried here",
    chromium: "Makes another group of them.",
    ours: "The group that is gone and the tabs that left it are side effects.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      stage.names.seeGroup(await stage.browser.tabs.group([a, b], { windowId: await stage.home() }));
      const tabIds = [stage.tabId(a), stage.tabId(b)];
      return told(stage, { case: "groupTabs", value: { tabIds } });
    },
    expected: {
      groupId: "g2",
      groupedCount: 2,
      items: ["a OK", "b OK"],
      sideEffects: { removedGroupIds: ["g1"], ungroupedTabIds: ["a", "b"] },
    },
  },
  {
    id: "group-nothing",
    title: "groupTabs where no tab can be grouped",
    source: "tried here",
    chromium: "Not asked.",
    ours: "A count of nothing, with an item for each; no group.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.browser.tabs.update(a, { pinned: true });
      return told(stage, { case: "groupTabs", value: { tabIds: [stage.tabId(a), stage.staleId(a)] } });
    },
    expected: {
      groupId: "",
      groupedCount: 0,
      items: ["a SKIPPED", "a NOT_FOUND"],
    },
  },
  {
    id: "group-asleep",
    title: "groupTabs of a tab that was put to sleep, by its old id",
    source: "3",
    chromium: "Groups it and does not wake it.",
    ours: "OK with the id that it has now; it sleeps on.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.sleep(a);
      const value = { tabIds: [stage.tabId(a)], colour: Colour.RED };
      return [await told(stage, { case: "groupTabs", value }), (await stage.view()).home];
    },
    expected: [{ groupId: "g1", groupedCount: 1, items: ["a OK as a"] }, ["home active", "a asleep in g1"]],
  },
  {
    id: "ungroup-some",
    title: "ungroupTabs of one of two tabs, of one that is in no group, and of one that is gone",
    source: "tried here",
    chromium: "Puts it beside its group; the group stays.",
    ours: "Counts what is in no group now; that it left is what was asked, and no side effect.",
    run: async (stage) => {
      const [a, b, c] = [await stage.open("a"), await stage.open("b"), await stage.open("c")];
      await stage.browser.tabs.group([a, b], { windowId: await stage.home() });
      const tabIds = [a, c, unknown].map((id) => stage.tabId(id));
      return [await told(stage, { case: "ungroupTabs", value: { tabIds } }), (await stage.view()).home];
    },
    expected: [
      { ungroupedCount: 2, items: ["a OK", "c OK", `tab ${unknown} NOT_FOUND`] },
      ["home active", "a", "b in g1", "c"],
    ],
  },
  {
    id: "ungroup-all",
    title: "ungroupTabs of all tabs of a group",
    source: "6",
    chromium: "Removes the group with its last tab.",
    ours: "The group that is gone is a side effect.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      stage.names.seeGroup(await stage.browser.tabs.group([a, b], { windowId: await stage.home() }));
      const tabIds = [stage.tabId(a), stage.tabId(b)];
      return [await told(stage, { case: "ungroupTabs", value: { tabIds } }), await stage.view()];
    },
    expected: [
      { ungroupedCount: 2, items: ["a OK", "b OK"], sideEffects: { removedGroupIds: ["g1"] } },
      { home: ["home active", "a", "b"] },
    ],
  },
  {
    id: "ungroup-collapsed",
    title: "ungroupTabs of a tab of a group that a person has folded",
    source: "tried here",
    chromium: "Takes it out; the group stays folded.",
    ours: "OK; nothing else changes.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      const group = await stage.browser.tabs.group([a, b], { windowId: await stage.home() });
      await stage.browser.groups.update(group, { colour: "red" });
      await stage.world.collapse(group);
      const answer = await told(stage, { case: "ungroupTabs", value: { tabIds: [stage.tabId(b)] } });
      return [answer, await stage.view()];
    },
    expected: [
      { ungroupedCount: 1, items: ["b OK"] },
      { home: ["home active", "a in g1", "b"], groups: ['g1 of home: "" red collapsed'] },
    ],
  },
  {
    id: "pin-grouped",
    title: "pinTabs of a tab that is alone in its group, and of one that is in a larger one",
    source: "6",
    chromium: "Takes both out of their groups, and removes the one that is empty then.",
    ours: "The tabs that left a group and the group that is gone are side effects.",
    run: async (stage) => {
      const [a, b, c] = [await stage.open("a"), await stage.open("b"), await stage.open("c")];
      const windowId = await stage.home();
      stage.names.seeGroup(await stage.browser.tabs.group([a], { windowId }));
      stage.names.seeGroup(await stage.browser.tabs.group([b, c], { windowId }));
      const value = { tabIds: [stage.tabId(a), stage.tabId(b)], pinned: true };
      return [await told(stage, { case: "pinTabs", value }), (await stage.view()).home];
    },
    expected: [
      {
        pinnedCount: 2,
        items: ["a OK", "b OK"],
        sideEffects: { removedGroupIds: ["g1"], ungroupedTabIds: ["a", "b"] },
      },
      ["a pinned", "b pinned", "home active", "c in g2"],
    ],
  },
  {
    id: "pin-popup-command",
    title: "pinTabs of a tab of a popup, of one that is pinned already, and of one that is gone",
    source: "6",
    chromium: "Pins the tab of a popup, too, where nobody sees it.",
    ours: "UNSUPPORTED_WINDOW for the popup, and it is left alone; counts what is pinned now.",
    run: async (stage) => {
      const [a, p] = [await stage.open("a"), await stage.openWindow("p", "popup")];
      await stage.browser.tabs.update(a, { pinned: true });
      const tabIds = [p, a, unknown].map((id) => stage.tabId(id));
      return [await told(stage, { case: "pinTabs", value: { tabIds, pinned: true } }), await stage.view()];
    },
    expected: [
      { pinnedCount: 1, items: ["p UNSUPPORTED_WINDOW", "a OK", `tab ${unknown} NOT_FOUND`] },
      { home: ["a pinned", "home active"], "w2 popup": ["p active"] },
    ],
  },
  {
    id: "unpin-order",
    title: "pinTabs unpins three tabs",
    source: "tried here",
    chromium: "Puts each one in front of all that are not pinned, which turns their order round.",
    ours: "They are unpinned from the right, so that they keep their order; unpinning is what was asked.",
    run: async (stage) => {
      const tabs = [await stage.open("a"), await stage.open("b"), await stage.open("c")];
      for (const id of tabs) {
        await stage.browser.tabs.update(id, { pinned: true });
      }
      const value = { tabIds: tabs.map((id) => stage.tabId(id)), pinned: false };
      return [await told(stage, { case: "pinTabs", value }), (await stage.view()).home];
    },
    expected: [{ pinnedCount: 3, items: ["a OK", "b OK", "c OK"] }, ["a", "b", "c", "home active"]],
  },
  {
    id: "group-worker-stopped",
    title: "groupTabs into a window, and the worker is stopped right after the browser did it",
    source: "11",
    chromium: "Has grouped the tabs and closed a window; nobody heard of it.",
    ours: "The next worker finds the group, and says what moved and which window closed; no second group is made.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.openWindow("b")];
      await stage.world.hang("group", "after");
      const value = { tabIds: [stage.tabId(a), stage.tabId(b)], windowId: stage.windowId(await stage.home()) };
      const answer = told(stage, { case: "groupTabs", value });
      await stage.world.hanging();
      await stage.world.stopWorker();
      return [await answer, (await stage.browser.groups.list()).length];
    },
    expected: [
      {
        groupId: "g1",
        groupedCount: 2,
        items: ["a OK", "b OK"],
        sideEffects: { closedWindowIds: ["w2"], movedTabIds: ["b"] },
      },
      1,
    ],
  },
  {
    id: "pin-worker-stopped",
    title: "pinTabs of the only tab of a group, and the worker is stopped right after the browser did it",
    source: "11",
    chromium: "Has pinned the tab and removed the group; nobody heard of it.",
    ours: "The next worker says so, compared with what was so before the first attempt.",
    run: async (stage) => {
      const a = await stage.open("a");
      stage.names.seeGroup(await stage.browser.tabs.group([a], { windowId: await stage.home() }));
      await stage.world.hang("update", "after");
      const answer = told(stage, { case: "pinTabs", value: { tabIds: [stage.tabId(a)], pinned: true } });
      await stage.world.hanging();
      await stage.world.stopWorker();
      return [await answer, (await stage.view()).home];
    },
    expected: [
      { pinnedCount: 1, items: ["a OK"], sideEffects: { removedGroupIds: ["g1"], ungroupedTabIds: ["a"] } },
      ["a pinned", "home active"],
    ],
  },
];
