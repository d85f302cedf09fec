/** What the browser does when tabs and windows are opened. */
import type { BrowserCase } from "../case.js";
import { type Stage, unknown } from "../stage.js";

const behind = { active: false } as const;

/** A tab as it is at once, and as it is in the end. */
async function made(stage: Stage, path: string) {
  const { tabs } = stage.browser;
  const atOnce = await tabs.create({ url: `http://a.test/${path}`, ...behind });
  await stage.view();
  const later = await tabs.get(atOnce.id);
  const short = (tab: typeof later) => (tab === undefined ? "gone" : [tab.url, tab.pendingUrl]);
  return [short(atOnce), short(later)];
}

export const opening: readonly BrowserCase[] = [
  {
    id: "create-pending",
    title: "A tab at the moment of its creation",
    source: "14",
    chromium: "Has no address and no title yet; where it goes to is pending, and it is loading.",
    ours: "The address of a tab is the pending one where there is one; so lists and saved tabs have it from the start.",
    run: async (stage) => {
      const { url, pendingUrl, title, loading } = await stage.browser.tabs.create({
        url: "http://a.test/x",
        ...behind,
      });
      return [url, pendingUrl, title, loading];
    },
    expected: ["", "http://a.test/x", "", true],
  },
  {
    id: "create-events",
    title: "What is told of a tab that is opened",
    source: "14",
    chromium: "Tells of the tab, and three times of what it has become: loading with its address, its title, loaded.",
    ours: "Changes are collected for 100 to 250 ms and handed on as one delta.",
    run: async (stage) => {
      await stage.browser.tabs.create({ url: "http://a.test/", ...behind });
      return stage.changes();
    },
    expected: ["placed a at 1 of home", "tab a loading", "tab a"],
  },
  {
    id: "create-flood",
    title: "Opening 20 tabs at once",
    source: "14",
    chromium: "Tells 80 times: 20 tabs that are new, and 60 changes of them.",
    ours: "One delta or two.",
    run: async (stage) => {
      const urls = Array.from({ length: 20 }, (_, n) => `http://f${n}.test/`);
      await Promise.all(urls.map((url) => stage.browser.tabs.create({ url, ...behind })));
      const changes = await stage.changes();
      // On a busy machine the browser puts some changes of one tab together.
      return [changes.filter((each) => each.startsWith("placed")).length, changes.length >= 40];
    },
    expected: [20, true],
  },
  {
    id: "create-front",
    title: "Opening a tab in front in a window behind",
    source: "7",
    chromium: "Brings the window to the front and gives it the focus, though nobody asked for that.",
    ours: "openTab names the window that took the focus.",
    run: async (stage) => {
      const { tabs, windows } = stage.browser;
      const windowId = await stage.windowOf(await stage.openWindow("w"));
      const before = (await windows.lastFocused()) === windowId;
      await tabs.create({ url: "http://a.test/", active: true, windowId });
      return [before, (await windows.lastFocused()) === windowId, await stage.view()];
    },
    expected: [false, true, { home: ["home active"], w2: ["w", "a active"] }],
  },
  {
    id: "create-behind",
    title: "Opening a tab behind in a window behind",
    source: "7",
    chromium: "Leaves the focus where it is.",
    ours: "The same; agents open tabs behind.",
    run: async (stage) => {
      const windowId = await stage.windowOf(await stage.openWindow("w"));
      await stage.browser.tabs.create({ url: "http://a.test/", active: false, windowId });
      return [(await stage.browser.windows.lastFocused()) === windowId, await stage.view()];
    },
    expected: [false, { home: ["home active"], w2: ["w active", "a"] }],
  },
  {
    id: "create-places",
    title: "Opening tabs at a place that they cannot have",
    source: "tried here",
    chromium:
      "Puts one that is asked for too far right at the end, and none before a pinned one; refuses a negative place.",
    ours: "restoreTabs asks for the place that a tab had, and takes what it gets.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      await tabs.update(await stage.open("p"), { pinned: true });
      const far = await tabs.create({ url: "http://far.test/", ...behind, index: 99 });
      const zero = await tabs.create({ url: "http://zero.test/", ...behind, index: 0 });
      const refused = await stage.ended(tabs.create({ url: "http://no.test/", ...behind, index: -1 }));
      return [far.index, zero.index, refused, await stage.view()];
    },
    expected: [2, 1, "other", { home: ["p pinned", "zero", "home active", "far"] }],
  },
  {
    id: "create-pinned",
    title: "Opening pinned tabs",
    source: "tried here",
    chromium: "Puts them behind the last pinned one, or before it where that is asked for.",
    ours: "restoreTabs opens a tab pinned instead of pinning it later.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      await tabs.create({ url: "http://a.test/", ...behind, pinned: true });
      await tabs.create({ url: "http://b.test/", ...behind, pinned: true, index: 50 });
      await tabs.create({ url: "http://c.test/", ...behind, pinned: true, index: 0 });
      return stage.view();
    },
    expected: { home: ["c pinned", "a pinned", "b pinned", "home active"] },
  },
  {
    id: "create-in-group",
    title: "Opening a tab at a place between the tabs of a group",
    source: "tried here",
    chromium: "Takes it into the group.",
    ours: "restoreTabs groups what was grouped; openTab gives no place.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      await tabs.group([await stage.open("a"), await stage.open("b")], { windowId: await stage.home() });
      await tabs.create({ url: "http://n.test/", ...behind, index: 2 });
      await tabs.create({ url: "http://m.test/", ...behind });
      return stage.view();
    },
    expected: { home: ["home active", "a in g1", "n in g1", "b in g1", "m"], groups: ['g1 of home: "" grey'] },
  },
  {
    id: "create-in-popup",
    title: "Opening a tab in a popup window",
    source: "6",
    chromium: "Opens it in a normal window instead, without a word.",
    ours: "openTab refuses a window that holds one tab only.",
    run: async (stage) => {
      const windowId = await stage.windowOf(await stage.openWindow("p", "popup"));
      await stage.browser.tabs.create({ url: "http://a.test/", ...behind, windowId });
      return stage.view();
    },
    expected: { home: ["home active", "a"], "w2 popup": ["p active"] },
  },
  {
    id: "create-window-gone",
    title: "Opening a tab in a window that is gone",
    source: "tried here",
    chromium: "Refuses and names the window.",
    ours: "NOT_FOUND for openTab, WINDOW_GONE for one of several tabs.",
    run: (stage) => stage.refusal(stage.browser.tabs.create({ url: "http://a.test/", ...behind, windowId: unknown })),
    expected: ["noWindow", unknown],
  },
  {
    id: "create-default",
    title: "Opening a tab without an address",
    source: "tried here",
    chromium: "Goes to chrome://newtab/, which turns into another address.",
    ours: "Used only to keep the browser open when its last tab is closed.",
    run: async (stage) => {
      const { url, pendingUrl } = await stage.browser.tabs.create(behind);
      return [url, pendingUrl];
    },
    expected: ["", "chrome://newtab/"],
  },
  {
    id: "create-window",
    title: "Opening a window that is not to have the focus",
    source: "tried here",
    chromium: "Answers before the page has come, and gives the window the focus unless it is told not to.",
    ours: "Done only where no window is left to open a tab in, and without the focus; the side effects name it.",
    run: async (stage) => {
      const { windows } = stage.browser;
      const { url, pendingUrl, active, windowId } = await windows.create("http://a.test/");
      return [url, pendingUrl, active, (await windows.lastFocused()) === windowId, await stage.view()];
    },
    expected: ["", "http://a.test/", true, false, { home: ["home active"], w2: ["a active"] }],
  },
  {
    id: "opened-by-page",
    title: "A page opens another one",
    source: "tried here",
    chromium: "Opens it in front, right beside its own tab.",
    ours: "A delta like any other.",
    run: async (stage) => {
      const a = await stage.open("a/opens");
      await stage.open("b");
      await stage.world.click(a);
      return stage.tabNames();
    },
    expected: ["home", "a/opens", "opened", "b"],
  },
  {
    id: "load-redirect",
    title: "Opening an address that leads to another one",
    source: "tried here",
    chromium: "Says first where the tab was sent, and in the end where it arrived.",
    ours: "openTab returns the address that was opened; the list has the one that is shown.",
    run: (stage) => made(stage, "redirects"),
    expected: [
      ["", "http://a.test/redirects"],
      ["http://a.test/target", ""],
    ],
  },
  {
    id: "load-nothing",
    title: "Opening an address whose server answers with nothing (204)",
    source: "tried here",
    chromium: "Leaves a blank tab without an address, and without an error.",
    ours: "The list has a tab without an address.",
    run: (stage) => made(stage, "nothing"),
    expected: [
      ["", "http://a.test/nothing"],
      ["", ""],
    ],
  },
  {
    id: "load-file",
    title: "Opening an address that is a file to keep",
    source: "tried here",
    chromium: "Closes the tab once the file is on its way.",
    ours: "openTab has answered by then; the list has no such tab, and a command on it is NOT_FOUND.",
    run: (stage) => made(stage, "file"),
    expected: [["", "http://a.test/file"], "gone"],
  },
  {
    id: "load-silent",
    title: "Opening an address whose server does not answer",
    source: "14",
    chromium: "Keeps the address pending; closing the tab works at once.",
    ours: "Lists and saved tabs have the pending address.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const { id } = await tabs.create({ url: "http://a.test/silent", ...behind });
      await stage.patience();
      const { url, pendingUrl, loading } = (await tabs.get(id)) ?? {};
      return [url, pendingUrl, loading, await stage.endedSoon(tabs.remove([id]))];
    },
    expected: ["", "http://a.test/silent", true, "done"],
  },
  {
    id: "load-unreachable",
    title: "Opening an address that cannot be reached",
    source: "tried here",
    chromium: "Shows an error of its own under the address that was asked for.",
    ours: "A tab like any other; it can be saved and opened again.",
    run: async (stage) => {
      const { id } = await stage.browser.tabs.create({ url: "https://a.test/", ...behind });
      await stage.view();
      const { url, pendingUrl } = (await stage.browser.tabs.get(id)) ?? {};
      return [url, pendingUrl];
    },
    expected: ["https://a.test/", ""],
  },
  {
    id: "load-elsewhere",
    title: "Sending a tab to another address",
    source: "14",
    chromium: "Says the new address as pending beside the old one, and tells three times.",
    ours: "navigateTab answers at once; the delta follows.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.changes();
      const { url, pendingUrl, loading } = await stage.browser.tabs.update(a, { url: "http://b.test/" });
      return [url, pendingUrl, loading, await stage.changes()];
    },
    expected: ["http://a.test/", "http://b.test/", true, ["tab b loading", "tab b"]],
  },
  {
    id: "load-fragment",
    title: "Sending a tab to another part of the same page",
    source: "14",
    chromium: "Loads nothing, tells twice, and one of them says loading.",
    ours: "A delta with the new address.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.changes();
      await stage.browser.tabs.update(a, { url: "http://a.test/#x" });
      return [await stage.changes(), await stage.tabNames()];
    },
    expected: [
      ["tab a/#x loading", "tab a/#x"],
      ["home", "a/#x"],
    ],
  },
  {
    id: "load-pushed",
    title: "A page changes its own address without loading",
    source: "14",
    chromium: "Tells twice, and one of them says loading.",
    ours: "A delta with the new address.",
    run: async (stage) => {
      const a = await stage.open("a/pushes");
      await stage.changes();
      await stage.world.click(a);
      const changes = await stage.changes();
      return [changes.filter((each) => each.startsWith("tab")), await stage.tabNames()];
    },
    expected: [
      ["tab a/pushed loading", "tab a/pushed"],
      ["home", "a/pushed"],
    ],
  },
  {
    id: "load-again",
    title: "Reloading a tab",
    source: "2",
    chromium: "Ends the call before anything is loaded, and tells that it loads.",
    ours: "reloadTabs waits for that.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.changes();
      const ended = await stage.ended(stage.browser.tabs.reload(a, true));
      return [ended, await stage.changes()];
    },
    expected: ["done", ["tab a loading", "tab a"]],
  },
];
