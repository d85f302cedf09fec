/** What the browser does when tabs are moved, pinned and muted. */
import type { BrowserCase } from "../case.js";
import { type Stage, unknown } from "../stage.js";

async function openAll(stage: Stage, ...names: string[]): Promise<[number, number, number, number]> {
  const ids: number[] = [];
  for (const name of names) {
    ids.push(await stage.open(name));
  }
  return ids as [number, number, number, number];
}

const grey = 'g1 of home: "" grey';

export const places: readonly BrowserCase[] = [
  {
    id: "move-far",
    title: "Moving a tab further than there are places",
    source: "tried here",
    chromium: "Puts it at the end and says so; refuses a place below -1.",
    ours: "The item's detail has the place that it got.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a", "b");
      const { index } = await stage.browser.tabs.move(a, { index: 99 });
      return [index, await stage.ended(stage.browser.tabs.move(a, { index: -2 })), await stage.view()];
    },
    expected: [2, "other", { home: ["home active", "b", "a"] }],
  },
  {
    id: "move-nowhere",
    title: "Moving a tab to where it is",
    source: "tried here",
    chromium: "Tells nothing.",
    ours: "OK.",
    run: async (stage) => {
      const [, b] = await openAll(stage, "a", "b");
      await stage.changes();
      return [await stage.ended(stage.browser.tabs.move(b, { index: 2 })), await stage.changes()];
    },
    expected: ["done", []],
  },
  {
    id: "move-event",
    title: "What is told of a tab that is moved",
    source: "14",
    chromium: "Tells of the one tab; that the others got new places is told by nothing.",
    ours: "The mirror moves the others.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a", "b", "c");
      await stage.changes();
      await stage.browser.tabs.move(a, { index: -1 });
      return stage.changes();
    },
    expected: ["placed a at 3 of home"],
  },
  {
    id: "move-gone",
    title: "Moving a tab that is gone, or to a window that is gone",
    source: "tried here",
    chromium: "Refuses, and names it.",
    ours: "NOT_FOUND, and WINDOW_GONE.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a");
      const { tabs } = stage.browser;
      return [
        await stage.refusal(tabs.move(unknown, { index: 0 })),
        await stage.refusal(tabs.move(a, { windowId: unknown, index: 0 })),
      ];
    },
    expected: [
      ["noTab", unknown],
      ["noWindow", unknown],
    ],
  },
  {
    id: "move-pinned",
    title: "Moving tabs across the border of the pinned ones",
    source: "tried here",
    chromium: "Stops a pinned tab at the last pinned place, and one that is not pinned behind it.",
    ours: "The item's detail has the place that it got.",
    run: async (stage) => {
      const [a, b, c] = await openAll(stage, "a", "b", "c");
      const { tabs } = stage.browser;
      await tabs.update(a, { pinned: true });
      await tabs.update(b, { pinned: true });
      return [(await tabs.move(a, { index: 3 })).index, (await tabs.move(c, { index: 0 })).index, await stage.view()];
    },
    expected: [1, 2, { home: ["b pinned", "a pinned", "c", "home active"] }],
  },
  {
    id: "move-window",
    title: "Moving grouped tabs to another window",
    source: "tried here",
    chromium: "Takes them out of their group, which goes with its last tab.",
    ours: "The side effects name the tabs and the group.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const windowId = await stage.windowOf(await stage.openWindow("w"));
      const [a, b] = await openAll(stage, "a", "b");
      await tabs.group([a, b], { windowId: await stage.home() });
      await tabs.move(a, { windowId, index: -1 });
      const first = await stage.view();
      await stage.changes();
      await tabs.move(b, { windowId, index: 0 });
      return [first, await stage.view(), await stage.changes()];
    },
    expected: [
      { home: ["home active", "b in g1"], w2: ["w active", "a"], groups: [grey] },
      { home: ["home active"], w2: ["b", "w active", "a"] },
      ["tab b", "groups", "left b", "placed b at 0 of w2"],
    ],
  },
  {
    id: "move-window-pinned",
    title: "Moving a pinned and muted tab to another window",
    source: "tried here",
    chromium: "Unpins it without a word; it stays muted.",
    ours: "The side effects name the tab that is not pinned any more.",
    run: async (stage) => {
      const windowId = await stage.windowOf(await stage.openWindow("w"));
      const [a] = await openAll(stage, "a");
      await stage.browser.tabs.update(a, { pinned: true, muted: true });
      await stage.browser.tabs.move(a, { windowId, index: 0 });
      return stage.view();
    },
    expected: { home: ["home active"], w2: ["a muted", "w active"] },
  },
  {
    id: "move-window-last",
    title: "Moving the last tab of a window",
    source: "5",
    chromium: "Closes the window.",
    ours: "The side effects name it.",
    run: async (stage) => {
      const w = await stage.openWindow("w");
      await stage.changes();
      await stage.browser.tabs.move(w, { windowId: await stage.home(), index: 0 });
      return [await stage.view(), await stage.changes()];
    },
    expected: [{ home: ["w", "home active"] }, ["left w", "placed w at 0 of home", "windows"]],
  },
  {
    id: "move-window-front",
    title: "Moving the tab in front to another window",
    source: "tried here",
    chromium: "Shows its neighbour where it was, and does not show it where it comes to.",
    ours: "The delta has both windows.",
    run: async (stage) => {
      const windowId = await stage.windowOf(await stage.openWindow("w"));
      const [a] = await openAll(stage, "a", "b");
      await stage.browser.tabs.update(a, { active: true });
      await stage.browser.tabs.move(a, { windowId, index: -1 });
      return stage.view();
    },
    expected: { home: ["home", "b active"], w2: ["w active", "a"] },
  },
  {
    id: "move-into-group",
    title: "Moving a tab between the tabs of a group in its window",
    source: "tried here",
    chromium: "Takes it into the group.",
    ours: "The delta has the group; moveTabs was asked for a place and has given it.",
    run: async (stage) => {
      const [a, b, , d] = await openAll(stage, "a", "b", "c", "d");
      await stage.browser.tabs.group([a, b], { windowId: await stage.home() });
      await stage.changes();
      await stage.browser.tabs.move(d, { index: 2 });
      return [await stage.view(), await stage.changes()];
    },
    expected: [
      { home: ["home active", "a in g1", "d in g1", "b in g1", "c"], groups: [grey] },
      ["tab d", "placed d at 2 of home"],
    ],
  },
  {
    id: "move-into-group-window",
    title: "Moving a tab between the tabs of a group in another window",
    source: "tried here",
    chromium: "Refuses, other than within one window: it would tear the group.",
    ours: "The port calls it splitsGroup; the item says so, and the tab stays.",
    run: async (stage) => {
      const [a, b] = await openAll(stage, "a", "b");
      const windowId = await stage.home();
      await stage.browser.tabs.group([a, b], { windowId });
      const w = await stage.openWindow("w");
      return [await stage.ended(stage.browser.tabs.move(w, { windowId, index: 2 })), await stage.view()];
    },
    expected: ["splitsGroup", { home: ["home active", "a in g1", "b in g1"], w2: ["w active"], groups: [grey] }],
  },
  {
    id: "move-beside-group",
    title: "Moving a tab to the edge of a group",
    source: "tried here",
    chromium: "Leaves it outside.",
    ours: "OK.",
    run: async (stage) => {
      const [, b, c, d] = await openAll(stage, "a", "b", "c", "d");
      await stage.browser.tabs.group([b, c], { windowId: await stage.home() });
      await stage.browser.tabs.move(d, { index: 2 });
      return stage.view();
    },
    expected: { home: ["home active", "a", "d", "b in g1", "c in g1"], groups: [grey] },
  },
  {
    id: "move-out-of-group",
    title: "Moving a tab away from its group",
    source: "tried here",
    chromium: "Takes it out of the group; within the group or to its edge it stays in.",
    ours: "The side effects name the tab that left.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const [a, b, c] = await openAll(stage, "a", "b", "c", "d");
      await tabs.group([a, b, c], { windowId: await stage.home() });
      await tabs.move(a, { index: 3 });
      const within = await stage.view();
      await tabs.move(b, { index: -1 });
      return [within, await stage.view()];
    },
    expected: [
      { home: ["home active", "b in g1", "c in g1", "a in g1", "d"], groups: [grey] },
      { home: ["home active", "c in g1", "a in g1", "d", "b"], groups: [grey] },
    ],
  },
  {
    id: "move-whole-group",
    title: "Moving the only tab of a group",
    source: "tried here",
    chromium: "Takes it out, and the group is gone.",
    ours: "The side effects name the tab and the group.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a", "b", "c");
      await stage.browser.tabs.group([a], { windowId: await stage.home() });
      await stage.browser.tabs.move(a, { index: -1 });
      return stage.view();
    },
    expected: { home: ["home active", "b", "c", "a in g1"], groups: [grey] },
  },
  {
    id: "move-to-popup",
    title: "Moving a tab into a popup window",
    source: "6",
    chromium: "Refuses.",
    ours: "UNSUPPORTED_WINDOW.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a");
      const windowId = await stage.windowOf(await stage.openWindow("p", "popup"));
      return [await stage.ended(stage.browser.tabs.move(a, { windowId, index: -1 })), await stage.view()];
    },
    expected: ["unsupportedWindow", { home: ["home active", "a"], "w2 popup": ["p active"] }],
  },
  {
    id: "move-from-popup",
    title: "Moving the tab of a popup window into a normal one",
    source: "tried here",
    chromium: "Does so, whatever the words of its refusals say, and closes the popup window.",
    ours: "OK; the side effects name the window that closed.",
    run: async (stage) => {
      const p = await stage.openWindow("p", "popup");
      return [
        await stage.ended(stage.browser.tabs.move(p, { windowId: await stage.home(), index: 0 })),
        await stage.view(),
      ];
    },
    expected: ["done", { home: ["p", "home active"] }],
  },
  {
    id: "pin-order",
    title: "Pinning and unpinning",
    source: "tried here",
    chromium: "Puts a tab behind the pinned ones when it is pinned, and right behind those left when it is unpinned.",
    ours: "OK; the places are read again.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const [, b, c] = await openAll(stage, "a", "b", "c");
      await tabs.update(b, { pinned: true });
      await tabs.update(c, { pinned: true });
      const both = await stage.view();
      await tabs.update(b, { pinned: false });
      return [both, await stage.view()];
    },
    expected: [{ home: ["b pinned", "c pinned", "home active", "a"] }, { home: ["c pinned", "b", "home active", "a"] }],
  },
  {
    id: "pin-same",
    title: "Pinning and muting what is pinned and muted",
    source: "tried here",
    chromium: "Tells nothing.",
    ours: "OK without a call.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a");
      await stage.browser.tabs.update(a, { pinned: true, muted: true });
      await stage.changes();
      await stage.browser.tabs.update(a, { pinned: true });
      await stage.browser.tabs.update(a, { muted: true });
      return stage.changes();
    },
    expected: [],
  },
  {
    id: "pin-popup",
    title: "Pinning the tab of a popup window",
    source: "6",
    chromium: "Calls it pinned, though the window shows no tabs.",
    ours: "UNSUPPORTED_WINDOW.",
    run: async (stage) => {
      const p = await stage.openWindow("p", "popup");
      await stage.browser.tabs.update(p, { pinned: true });
      return stage.view();
    },
    expected: { home: ["home active"], "w2 popup": ["p active pinned"] },
  },
  {
    id: "mute-stays",
    title: "Sending a muted tab to another address",
    source: "tried here",
    chromium: "Keeps it muted.",
    ours: "OK.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a");
      await stage.browser.tabs.update(a, { muted: true });
      await stage.browser.tabs.update(a, { url: "http://b.test/" });
      return stage.view();
    },
    expected: { home: ["home active", "b muted"] },
  },
  {
    id: "change-many",
    title: "Changing several things of one tab in one call, one of which is refused",
    source: "tried here",
    chromium: "Keeps what it did before the refusal.",
    ours: "One thing in each call.",
    run: async (stage) => {
      const [a] = await openAll(stage, "a");
      const change = { active: true, pinned: true, muted: true, url: "chrome://kill" };
      return [await stage.ended(stage.browser.tabs.update(a, change)), await stage.view()];
    },
    expected: ["refusedUrl", { home: ["a active pinned muted", "home"] }],
  },
];
