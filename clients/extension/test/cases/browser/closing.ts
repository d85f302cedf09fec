/** What the browser does when tabs are closed. */
import type { BrowserCase } from "../case.js";
import { unknown } from "../stage.js";

export const closing: readonly BrowserCase[] = [
  {
    id: "close-order",
    title: "Closing several tabs, one of which is gone",
    source: "1",
    chromium: "Closes those before the one that is gone, refuses, and leaves those after it.",
    ours: "The port names the id that is missing; closeTabs goes on behind it.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      return [await stage.refusal(stage.browser.tabs.remove([a, unknown, b])), await stage.view()];
    },
    expected: [["noTab", unknown], { home: ["home active", "b"] }],
  },
  {
    id: "close-tail",
    title: "Closing several tabs, the last of which is gone",
    source: "1",
    chromium: "Closes all that are there, and refuses all the same.",
    ours: "What closed is read back, so the refusal costs no count.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      return [await stage.ended(stage.browser.tabs.remove([a, b, unknown])), await stage.view()];
    },
    expected: ["noTab", { home: ["home active"] }],
  },
  {
    id: "close-twice",
    title: "Closing a tab that is named twice in one call",
    source: "1",
    chromium: "Closes it, and refuses because it is gone then.",
    ours: "Ids that are named twice are one target.",
    run: async (stage) => {
      const a = await stage.open("a");
      return [await stage.ended(stage.browser.tabs.remove([a, a])), await stage.view()];
    },
    expected: ["noTab", { home: ["home active"] }],
  },
  {
    id: "close-none",
    title: "Closing no tabs at all",
    source: "tried here",
    chromium: "Takes an empty list and does nothing.",
    ours: "The contract asks for at least one id.",
    run: async (stage) => [await stage.ended(stage.browser.tabs.remove([])), await stage.view()],
    expected: ["done", { home: ["home active"] }],
  },
  {
    id: "close-front",
    title: "Closing the tab in front",
    source: "tried here",
    chromium: "Brings its right neighbour to the front, the left one if there is none.",
    ours: "The delta has the tab that is active now.",
    run: async (stage) => {
      const [a, b, c] = [await stage.open("a"), await stage.open("b"), await stage.open("c")];
      await stage.browser.tabs.update(b, { active: true });
      await stage.browser.tabs.remove([b]);
      const first = await stage.view();
      await stage.browser.tabs.remove([c]);
      return [first, await stage.view(), stage.names.tab(a)];
    },
    expected: [{ home: ["home", "a", "c active"] }, { home: ["home", "a active"] }, "a"],
  },
  {
    id: "close-last-of-window",
    title: "Closing the last tab of a window",
    source: "tried here",
    chromium: "Closes the window with it.",
    ours: "The side effects name the window that closed.",
    run: async (stage) => {
      const a = await stage.openWindow("a");
      await stage.changes();
      return [await stage.ended(stage.browser.tabs.remove([a])), await stage.view(), await stage.changes()];
    },
    expected: ["done", { home: ["home active"] }, ["removed a", "windows"]],
  },
  {
    id: "close-events",
    title: "What is told of tabs that close",
    source: "14",
    chromium: "Tells of each tab by itself; nothing tells that the places of the others moved.",
    ours: "The mirror closes the gap that a tab leaves.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      await stage.open("c");
      await stage.changes();
      await stage.browser.tabs.remove([a, b]);
      return stage.changes();
    },
    expected: ["removed a", "removed b"],
  },
  {
    id: "close-grouped",
    title: "Closing the last tab of a group",
    source: "6",
    chromium: "Takes the tab out of its group first, removes the group, and then closes the tab.",
    ours: "The side effects name the group that is gone; it cannot be used any more.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      const group = await tabs.group([a], { windowId: await stage.home() });
      await stage.changes();
      await tabs.remove([a]);
      return [await stage.changes(), await stage.ended(tabs.group([b], { groupId: group })), await stage.view()];
    },
    expected: [["tab a", "groups", "removed a"], "noGroup", { home: ["home active", "b"] }],
  },
  {
    id: "close-window",
    title: "A person closes a window with several tabs",
    source: "tried here",
    chromium: "Closes its tabs from the last to the first, and then the window.",
    ours: "The server hears of each tab that is gone, and of the window.",
    run: async (stage) => {
      const a = await stage.openWindow("a");
      const windowId = await stage.windowOf(a);
      await stage.open("b", { in: windowId });
      await stage.changes();
      await stage.world.closeWindow(windowId);
      return [await stage.view(), await stage.changes()];
    },
    expected: [{ home: ["home active"] }, ["removed b", "removed a", "windows"]],
  },
  {
    id: "close-itself",
    title: "Closing a tab that a page had opened",
    source: "tried here",
    chromium: "Goes back to the tab that had opened it, not to the neighbour.",
    ours: "The delta has the tab that is active now.",
    run: async (stage) => {
      const [a, opened] = [await stage.open("a/opens"), "opened"];
      await stage.open("b");
      await stage.world.click(a);
      await stage.browser.tabs.update(a, { active: true });
      await stage.open("c");
      const before = await stage.view();
      const tab = (await stage.browser.tabs.list()).find(({ url }) => url.includes(opened));
      await stage.browser.tabs.update(tab?.id ?? 0, { active: true });
      await stage.browser.tabs.remove([tab?.id ?? 0]);
      return [before, await stage.view()];
    },
    expected: [
      { home: ["home", "a/opens active", "opened", "b", "c"] },
      { home: ["home", "a/opens active", "b", "c"] },
    ],
  },
];
