/** What the browser does with groups of tabs. */
import type { GroupColour } from "../../../src/platform/port.js";
import type { BrowserCase } from "../case.js";
import { type Stage, unknown } from "../stage.js";

async function openAll(stage: Stage, ...names: string[]): Promise<number[]> {
  const ids: number[] = [];
  for (const name of names) {
    ids.push(await stage.open(name));
  }
  return ids;
}

/** Groups tabs in the first window. */
async function group(stage: Stage, ...ids: (number | undefined)[]): Promise<number> {
  const windowId = await stage.home();
  return stage.browser.tabs.group(
    ids.flatMap((id) => id ?? []),
    { windowId },
  );
}

const grey = 'g1 of home: "" grey';

export const groups: readonly BrowserCase[] = [
  {
    id: "group-apart",
    title: "Grouping tabs that are not side by side",
    source: "tried here",
    chromium: "Gathers them where the first one is, in the order of their places, whatever order was asked for.",
    ours: "Counts what is in the group, and says nothing of the order.",
    run: async (stage) => {
      const [, b, , d] = await openAll(stage, "a", "b", "c", "d");
      await stage.changes();
      await group(stage, d, b);
      return [await stage.view(), await stage.changes()];
    },
    expected: [
      { home: ["home active", "a", "b in g1", "d in g1", "c"], groups: [grey] },
      ["tab b", "tab d", "groups", "groups", "placed d at 3 of home"],
    ],
  },
  {
    id: "group-windows",
    title: "Grouping tabs of two windows",
    source: "5",
    chromium: "Moves them into the window that was named, to its end, and gathers them.",
    ours: "INVALID unless a window is named; the side effects list the tabs that were moved.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a", "x");
      const b = await stage.openWindow("b");
      await stage.open("c", { in: await stage.windowOf(b) });
      await group(stage, b, a);
      return stage.view();
    },
    expected: { home: ["home active", "a in g1", "b in g1", "x"], w2: ["c active"], groups: [grey] },
  },
  {
    id: "group-windows-order",
    title: "Grouping tabs of another window only",
    source: "tried here",
    chromium: "Puts them in the order in which they were named.",
    ours: "Counts what is in the group, and says nothing of the order.",
    run: async (stage) => {
      const b = await stage.openWindow("b");
      const windowId = await stage.windowOf(b);
      await stage.open("c", { in: windowId });
      const d = await stage.open("d", { in: windowId });
      await stage.open("x");
      await group(stage, d, b);
      return stage.view();
    },
    expected: { home: ["home active", "x", "d in g1", "b in g1"], w2: ["c active"], groups: [grey] },
  },
  {
    id: "group-empties-window",
    title: "Grouping the last tab of another window",
    source: "5",
    chromium: "Closes the window that it empties.",
    ours: "The side effects name the window that closed.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a");
      const b = await stage.openWindow("b");
      await stage.changes();
      await group(stage, b, a);
      return [await stage.view(), await stage.changes()];
    },
    expected: [
      { home: ["home active", "a in g1", "b in g1"], groups: [grey] },
      ["left b", "placed b at 2 of home", "tab a", "tab b", "groups", "groups", "windows"],
    ],
  },
  {
    id: "group-pinned",
    title: "Grouping a pinned tab",
    source: "6",
    chromium: "Unpins it without a word.",
    ours: "SKIPPED unless allow_unpin is set; then the side effects name it.",
    run: async (stage) => {
      const [a, b, c] = await openAll(stage, "a", "b", "c");
      await stage.browser.tabs.update(a as number, { pinned: true });
      await stage.browser.tabs.update(b as number, { pinned: true });
      await group(stage, a, c);
      return stage.view();
    },
    expected: { home: ["b pinned", "a in g1", "c in g1", "home active"], groups: [grey] },
  },
  {
    id: "group-pin",
    title: "Pinning a grouped tab",
    source: "6",
    chromium: "Takes it out of its group, and removes the group if it was the last one.",
    ours: "The side effects of pinTabs name the tab and the group.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a", "b");
      await group(stage, a);
      await stage.changes();
      await stage.browser.tabs.update(a as number, { pinned: true });
      return [await stage.view(), (await stage.changes()).includes("groups")];
    },
    expected: [{ home: ["a pinned", "home active", "b"] }, true],
  },
  {
    id: "group-gone",
    title: "Grouping tabs, one of which is gone",
    source: "6",
    chromium: "Groups none, and names the one.",
    ours: "groupTabs tries the others once more; the one is NOT_FOUND.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a");
      const ids = [a as number, unknown];
      const windowId = await stage.home();
      return [await stage.refusal(stage.browser.tabs.group(ids, { windowId })), await stage.view()];
    },
    expected: [["noTab", unknown], { home: ["home active", "a"] }],
  },
  {
    id: "group-nowhere",
    title: "Grouping into a window or a group that is gone",
    source: "tried here",
    chromium: "Refuses, names what is gone, and groups none.",
    ours: "NOT_FOUND.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a");
      const { tabs } = stage.browser;
      return [
        await stage.refusal(tabs.group([a as number], { windowId: unknown })),
        await stage.refusal(tabs.group([a as number], { groupId: unknown })),
        await stage.view(),
      ];
    },
    expected: [["noWindow", unknown], ["noGroup", unknown], { home: ["home active", "a"] }],
  },
  {
    id: "group-popup",
    title: "Grouping the tab of a popup window where it is",
    source: "6",
    chromium: "Refuses.",
    ours: "UNSUPPORTED_WINDOW.",
    run: async (stage) => {
      const p = await stage.openWindow("p", "popup");
      const windowId = await stage.windowOf(p);
      return [await stage.ended(stage.browser.tabs.group([p], { windowId })), await stage.view()];
    },
    expected: ["unsupportedWindow", { home: ["home active"], "w2 popup": ["p active"] }],
  },
  {
    id: "group-from-popup",
    title: "Grouping the tab of a popup window in a normal one",
    source: "tried here",
    chromium: "Moves it there and closes the popup window.",
    ours: "UNSUPPORTED_WINDOW: a page that was opened as a popup stays one.",
    run: async (stage) => {
      await group(stage, await stage.openWindow("p", "popup"));
      return stage.view();
    },
    expected: { home: ["home active", "p in g1"], groups: [grey] },
  },
  {
    id: "group-into-popup",
    title: "Grouping a tab of a normal window in a popup window",
    source: "tried here",
    chromium: "Refuses.",
    ours: "A window that is not normal is refused before the browser is asked.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a");
      const windowId = await stage.windowOf(await stage.openWindow("p", "popup"));
      return [await stage.ended(stage.browser.tabs.group([a as number], { windowId })), await stage.view()];
    },
    expected: ["unsupportedWindow", { home: ["home active", "a"], "w2 popup": ["p active"] }],
  },
  {
    id: "group-add",
    title: "Adding tabs from both sides to a group",
    source: "tried here",
    chromium: "Puts those that came before it on its left, those behind it on its right.",
    ours: "restoreTabs puts a tab back into the group that it was in.",
    run: async (stage) => {
      const [a, b, , d] = await openAll(stage, "a", "b", "c", "d");
      const groupId = await group(stage, b);
      await stage.browser.tabs.group([d as number, a as number], { groupId });
      return stage.view();
    },
    expected: { home: ["home active", "a in g1", "b in g1", "d in g1", "c"], groups: [grey] },
  },
  {
    id: "group-add-window",
    title: "Adding a tab of another window to a group",
    source: "5",
    chromium: "Moves it to the window of the group, and closes its own if that is empty then.",
    ours: "The side effects name both.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a", "b");
      const groupId = await group(stage, a);
      await stage.browser.tabs.group([await stage.openWindow("w")], { groupId });
      return stage.view();
    },
    expected: { home: ["home active", "a in g1", "w in g1", "b"], groups: [grey] },
  },
  {
    id: "group-again",
    title: "Grouping tabs that are in a group already",
    source: "tried here",
    chromium: "Makes a new group, and removes the old one if nothing is left in it.",
    ours: "The side effects name the group that is gone.",
    run: async (stage) => {
      const [a, b] = await openAll(stage, "a", "b");
      await group(stage, a);
      await stage.changes();
      await group(stage, a, b);
      return [await stage.view(), await stage.changes()];
    },
    expected: [
      { home: ["home active", "a in g2", "b in g2"], groups: ['g2 of home: "" blue'] },
      ["tab a", "tab b", "groups", "groups", "groups"],
    ],
  },
  {
    id: "group-out-of-middle",
    title: "Grouping a tab from the middle of a group with one outside",
    source: "tried here",
    chromium: "Puts the new group behind the old one, which stays in one piece.",
    ours: "OK.",
    run: async (stage) => {
      const [a, b, c, d] = await openAll(stage, "a", "b", "c", "d");
      await group(stage, a, b, c);
      await group(stage, d, b);
      return stage.view();
    },
    expected: {
      home: ["home active", "a in g1", "c in g1", "b in g2", "d in g2"],
      groups: [grey, 'g2 of home: "" blue'],
    },
  },
  {
    id: "group-colours",
    title: "Colours of groups that nobody chose",
    source: "tried here",
    chromium: "Takes the one that the fewest groups of the window have, in a fixed order.",
    ours: "The list has the colour; a caller may name one.",
    run: async (stage) => {
      const ids = await openAll(stage, "a", "b", "c", "d");
      for (const id of ids) {
        await group(stage, id);
      }
      return (await stage.view()).groups;
    },
    expected: ["grey", "blue", "red", "yellow"].map((colour, at) => `g${at + 1} of home: "" ${colour}`),
  },
  {
    id: "group-title-long",
    title: "A title of 10,000 characters for a group",
    source: "tried here",
    chromium: "Takes it whole.",
    ours: "A command's title has at most 80 characters; the state carries 1,024 bytes of one.",
    run: async (stage) => {
      const id = await group(stage, await stage.open("a"));
      await stage.browser.groups.update(id, { title: "x".repeat(10_000), colour: "pink" });
      return (await stage.browser.groups.list()).map(({ title, colour }) => [title.length, colour]);
    },
    expected: [[10_000, "pink"]],
  },
  {
    id: "group-title-odd",
    title: "A title with control characters and half a character",
    source: "tried here",
    chromium: "Keeps the control characters and puts a mark of replacement for the half one.",
    ours: "What a message cannot carry is mended; the model sees control characters as marks.",
    run: async (stage) => {
      const id = await group(stage, await stage.open("a"));
      await stage.browser.groups.update(id, { title: "a\u0000\u202Eb\n" });
      return (await stage.browser.groups.list()).map(({ title }) => title);
    },
    expected: ["a\u0000\u202Eb\n"],
  },
  {
    id: "group-colour-unknown",
    title: "A colour that is none of the nine",
    source: "tried here",
    chromium: "Refuses, and changes nothing.",
    ours: "The contract has the nine only: INVALID.",
    run: async (stage) => {
      const id = await group(stage, await stage.open("a"));
      const colour = "violet" as GroupColour;
      return [await stage.ended(stage.browser.groups.update(id, { title: "t", colour })), (await stage.view()).groups];
    },
    expected: ["other", [grey]],
  },
  {
    id: "group-update-gone",
    title: "Naming a group that is gone",
    source: "tried here",
    chromium: "Refuses, and names it.",
    ours: "groupTabs reads back what is in the group.",
    run: (stage) => stage.refusal(stage.browser.groups.update(unknown, { title: "t" })),
    expected: ["noGroup", unknown],
  },
  {
    id: "group-none",
    title: "Grouping no tabs at all",
    source: "tried here",
    chromium: "Refuses an empty list, other than for closing.",
    ours: "The contract asks for at least one id; with no tab left, no group is made.",
    run: async (stage) => [
      await stage.ended(stage.browser.tabs.group([], { windowId: await stage.home() })),
      await stage.ended(stage.browser.tabs.ungroup([])),
    ],
    expected: ["other", "other"],
  },
  {
    id: "group-twice",
    title: "Grouping a tab that is named twice in one call",
    source: "tried here",
    chromium: "Takes it as one.",
    ours: "Ids that are named twice are one target.",
    run: async (stage) => {
      const a = await stage.open("a");
      await group(stage, a, a);
      return stage.view();
    },
    expected: { home: ["home active", "a in g1"], groups: [grey] },
  },
  {
    id: "ungroup-middle",
    title: "Taking tabs out of a group",
    source: "tried here",
    chromium: "Puts one of the first half on the left of the group, one of the second half on its right.",
    ours: "OK; the places are read again.",
    run: async (stage) => {
      const ids = await openAll(stage, "a", "b", "c", "d");
      await group(stage, ...ids);
      const [, b, c] = ids as [number, number, number, number];
      await stage.browser.tabs.ungroup([b]);
      const first = await stage.view();
      await stage.browser.tabs.ungroup([c]);
      return [first, await stage.view()];
    },
    expected: [
      { home: ["home active", "b", "a in g1", "c in g1", "d in g1"], groups: [grey] },
      { home: ["home active", "b", "a in g1", "d in g1", "c"], groups: [grey] },
    ],
  },
  {
    id: "ungroup-last",
    title: "Taking the last tab out of a group",
    source: "6",
    chromium: "Removes the group.",
    ours: "The side effects name the group.",
    run: async (stage) => {
      const a = await stage.open("a");
      await group(stage, a);
      await stage.changes();
      await stage.browser.tabs.ungroup([a]);
      return [await stage.view(), await stage.changes()];
    },
    expected: [{ home: ["home active", "a"] }, ["tab a", "groups"]],
  },
  {
    id: "ungroup-gone",
    title: "Taking tabs out of their group, one of which is gone",
    source: "tried here",
    chromium:
      "Takes out those before the one that is gone, and refuses: other than grouping, it is not all or nothing.",
    ours: "ungroupTabs asks for each tab by itself.",
    run: async (stage) => {
      const [a, b] = (await openAll(stage, "a", "b")) as [number, number];
      await group(stage, a, b);
      return [await stage.ended(stage.browser.tabs.ungroup([a, unknown, b])), await stage.view()];
    },
    expected: ["noTab", { home: ["home active", "a", "b in g1"], groups: [grey] }],
  },
  {
    id: "ungroup-ungrouped",
    title: "Taking a tab out of its group that is in none",
    source: "tried here",
    chromium: "Does nothing, tells nothing, and does not refuse.",
    ours: "OK: it is in no group now.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.changes();
      return [await stage.ended(stage.browser.tabs.ungroup([a])), await stage.changes()];
    },
    expected: ["done", []],
  },
  {
    id: "fold-show",
    title: "Showing a tab of a group that is folded",
    source: "tried here",
    chromium: "Unfolds the group.",
    ours: "The delta has the group as it is.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.world.collapse(await group(stage, a));
      const before = await stage.view();
      await stage.browser.tabs.update(a, { active: true });
      return [before.groups, await stage.view()];
    },
    expected: [[`${grey} collapsed`], { home: ["home", "a active in g1"], groups: [grey] }],
  },
  {
    id: "fold-front",
    title: "Folding the group of the tab in front",
    source: "tried here",
    chromium: "Folds it, and the tab stays the active one.",
    ours: "getActiveTab names a tab that the person cannot see; so it is.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.open("b");
      const id = await group(stage, a);
      await stage.browser.tabs.update(a, { active: true });
      await stage.world.collapse(id);
      return stage.view();
    },
    expected: { home: ["home", "a active in g1", "b"], groups: [`${grey} collapsed`] },
  },
];
