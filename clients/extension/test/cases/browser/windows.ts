/** What the browser does with the tab and the window in front, with windows of other kinds, and when a person is at work. */
import type { BrowserCase } from "../case.js";
import { unknown } from "../stage.js";

const dragging =
  "a drag needs a person's mouse on the tab strip, which a headless browser does not have; its refusal is injected";

export const windows: readonly BrowserCase[] = [
  {
    id: "show-behind",
    title: "Showing a tab in a window behind",
    source: "7",
    chromium: "Shows it there; the focus stays where it is.",
    ours: "activateTab does no more than that unless focusWindow is set.",
    run: async (stage) => {
      const w = await stage.openWindow("w");
      const a = await stage.open("a", { in: await stage.windowOf(w) });
      await stage.browser.tabs.update(a, { active: true });
      return [(await stage.browser.windows.lastFocused()) === (await stage.home()), await stage.view()];
    },
    expected: [true, { home: ["home active"], w2: ["w", "a active"] }],
  },
  {
    id: "show-same",
    title: "Showing the tab that is shown, and asking not to show one",
    source: "tried here",
    chromium: "Does nothing in both cases, and tells nothing.",
    ours: "activateTab reads back whether the tab is shown.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.browser.tabs.update(a, { active: true });
      await stage.changes();
      await stage.browser.tabs.update(a, { active: true });
      await stage.browser.tabs.update(a, { active: false });
      return [await stage.view(), await stage.changes()];
    },
    expected: [{ home: ["home", "a active"] }, []],
  },
  {
    id: "focus",
    title: "Giving a window the focus",
    source: "7",
    chromium: "Makes it the one that had the focus last.",
    ours: "activateTab with focusWindow does both, and names the window.",
    run: async (stage) => {
      const windowId = await stage.windowOf(await stage.openWindow("w"));
      await stage.browser.windows.focus(windowId);
      return (await stage.browser.windows.lastFocused()) === windowId;
    },
    expected: true,
  },
  {
    id: "focus-gone",
    title: "Giving a window the focus that is gone",
    source: "tried here",
    chromium: "Refuses, and names it.",
    ours: "NOT_FOUND.",
    run: (stage) => stage.refusal(stage.browser.windows.focus(unknown)),
    expected: ["noWindow", unknown],
  },
  {
    id: "focus-closed",
    title: "Closing the window that has the focus",
    source: "tried here",
    chromium: "Leaves the focus to another window.",
    ours: "getActiveTab reads which one.",
    run: async (stage) => {
      const { id, windowId } = await stage.browser.windows.create("http://a.test/");
      await stage.browser.windows.focus(windowId);
      const before = (await stage.browser.windows.lastFocused()) === windowId;
      await stage.browser.tabs.remove([id]);
      await stage.view();
      return [before, (await stage.browser.windows.lastFocused()) === (await stage.home())];
    },
    expected: [true, true],
  },
  {
    id: "list-gone",
    title: "Listing the tabs of a window that is gone",
    source: "tried here",
    chromium: "Says that it has none, and does not refuse.",
    ours: "The port gives an empty list.",
    run: (stage) => stage.browser.tabs.list(unknown),
    expected: [],
  },
  {
    id: "get-gone",
    title: "Asking for a tab that is gone, or changing one",
    source: "tried here",
    chromium: "Refuses, and names it.",
    ours: "The port gives undefined for the first; NOT_FOUND for the others.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      return [
        await tabs.get(unknown),
        await stage.refusal(tabs.update(unknown, { active: true })),
        await stage.refusal(tabs.reload(unknown, false)),
      ];
    },
    expected: [undefined, ["noTab", unknown], ["noTab", unknown]],
  },
  {
    id: "popup-kind",
    title: "A popup window",
    source: "6",
    chromium: "Is a window of its own kind with one tab.",
    ours: "Listed with its kind; its tab can be closed, shown, muted, reloaded and sent elsewhere.",
    run: async (stage) => {
      const p = await stage.openWindow("p", "popup");
      const { tabs } = stage.browser;
      await tabs.update(p, { muted: true });
      await tabs.update(p, { url: "http://q.test/" });
      const changed = await stage.view();
      return [changed, await stage.ended(tabs.remove([p])), await stage.view()];
    },
    expected: [{ home: ["home active"], "w2 popup": ["q active muted"] }, "done", { home: ["home active"] }],
  },
  {
    id: "drag",
    title: "Changing tabs while a person drags one",
    source: "15",
    chromium: "Refuses for as long as it lasts: tabs cannot be edited right now.",
    ours: "The port calls it busy; whatever can be done again is, up to five times within 1.6 s.",
    fakeOnly: dragging,
    run: async (stage) => {
      const a = await stage.open("a");
      const { tabs } = stage.browser;
      stage.world.drag(5);
      const refused = [
        await stage.ended(tabs.update(a, { pinned: true })),
        await stage.ended(tabs.move(a, { index: 0 })),
        await stage.ended(tabs.group([a], { windowId: await stage.home() })),
        await stage.ended(tabs.ungroup([a])),
        await stage.ended(tabs.remove([a])),
      ];
      return [refused, await stage.view()];
    },
    expected: [["busy", "busy", "busy", "busy", "busy"], { home: ["home active", "a"] }],
  },
];
