/** Cases of commands that save and restore tabs. */
import type { CommandCase } from "../case.js";
import type { CommandStage, Kind } from "../stage.js";
import { begins, does } from "./brief.js";

const save = (stage: CommandStage, ids: readonly number[], close = true): Kind => ({
  case: "saveTabs",
  value: { tabIds: ids.map((id) => stage.tabId(id)), close },
});

const saved = (savedCount: number, closedCount: number, ...items: string[]) => ({ savedCount, closedCount, items });

const saving: readonly CommandCase[] = [
  {
    id: "saveTabs-open",
    title: "saveTabs without close, of a tab that is there and one that is gone",
    source: "9",
    chromium: "Is only read.",
    ours: "OK and NOT_FOUND; nothing is closed.",
    run: async (stage) => {
      const [a, gone] = [await stage.open("a"), await stage.open("gone")];
      await stage.world.close(gone);
      return [await does(stage, save(stage, [a, gone], false)), await stage.view()];
    },
    expected: [saved(1, 0, "a OK", "gone NOT_FOUND"), { home: ["home active", "a"] }],
  },
  {
    id: "saveTabs-close",
    title: "saveTabs with close of all tabs of a window",
    source: "9",
    chromium: "Closes the window with its last tab.",
    ours: "Each is saved first and then closed; the window is told as a side effect.",
    run: async (stage) => {
      const a = await stage.openWindow("a");
      const b = await stage.open("b", { in: await stage.windowOf(a) });
      return [await does(stage, save(stage, [a, b])), await stage.view()];
    },
    expected: [{ ...saved(2, 2, "a OK", "b OK"), closedWindowIds: ["w2"] }, { home: ["home active"] }],
  },
  {
    id: "saveTabs-unopenable",
    title: "saveTabs with close of pages that no extension can open again, or that hold a password",
    source: "9, 10",
    chromium: "Opens some of them for an extension and others not.",
    ours: "REFUSED_URL for each, and they stay open; the others are saved and closed.",
    run: async (stage) => {
      const urls = ["chrome://version/", "data:text/html,x", "http://me:secret@a.test/", "about:blank"];
      const ids = [await stage.open("b")];
      for (const url of urls) {
        ids.push(await stage.world.openTab(url));
      }
      await stage.view();
      const result = await does(stage, save(stage, ids));
      return [result, (await stage.browser.tabs.list()).length];
    },
    expected: [
      saved(
        1,
        1,
        "b OK",
        "chrome://version/ REFUSED_URL",
        "data:text/html,x REFUSED_URL",
        "http://me:secret@a.test/ REFUSED_URL",
        "about:blank REFUSED_URL",
      ),
      5,
    ],
  },
  {
    id: "saveTabs-idn",
    title: "saveTabs with close of addresses with an international name, an escape that is none, and a long query",
    source: "10",
    chromium: "Writes the name in its ASCII form, and leaves the rest as it is.",
    ours: "OK: the address is kept as the browser writes it.",
    run: async (stage) => {
      const urls = ["http://b\u00fccher.test/", "http://a.test/%zz", `http://a.test/?q=${"x".repeat(5000)}`];
      const ids = [];
      for (const url of urls) {
        ids.push(await stage.world.openTab(url));
      }
      await stage.view();
      const { outcome } = await stage.deliver(save(stage, ids));
      const value = outcome.case === "result" ? outcome.value.kind.value : undefined;
      return [value !== undefined && "closedCount" in value ? value.closedCount : 0, await stage.view()];
    },
    expected: [3, { home: ["home active"] }],
  },
  {
    id: "saveTabs-guarded",
    title: "saveTabs with close of a tab whose page asks, and one that does not",
    source: "2, 9",
    chromium: "Closes the plain one.",
    ours: "Both are saved, one is closed; the guarded one is asked once.",
    run: async (stage) => {
      const [g, p] = [await stage.openGuarded("g"), await stage.open("p")];
      const first = await does(stage, save(stage, [g, p]), { short: true });
      return [first, await does(stage, save(stage, [g])), await stage.view()];
    },
    expected: [saved(2, 1, "g/guard OK", "p OK"), saved(1, 0, "g/guard OK"), { home: ["home", "g/guard active"] }],
  },
  {
    id: "saveTabs-moved-on",
    title: "saveTabs with close of a tab that has gone to another page than the one that the server keeps",
    source: "9",
    chromium: "Shows the new page.",
    ours: "BUSY, and it is neither counted as saved nor closed; the other one is.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      const kept = [
        { savedId: "s1", tabId: stage.tabId(a), url: "http://a.test/before" },
        { savedId: "s2", tabId: stage.tabId(b), url: "http://b.test/" },
      ];
      return [await does(stage, save(stage, [a, b]), { saved: kept }), await stage.view()];
    },
    expected: [saved(1, 1, "a BUSY", "b OK"), { home: ["home active", "a"] }],
  },
  {
    id: "saveTabs-stopped",
    title: "The worker is stopped after saveTabs has closed the tabs, before it could say so",
    source: "11",
    chromium: "Has closed them.",
    ours: "The next worker reads that they are gone, and counts them.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      await stage.world.hang("remove", "after");
      const ends = begins(stage, save(stage, [a, b]));
      await stage.world.hanging();
      await stage.world.stopWorker();
      return [await ends(), await stage.view()];
    },
    expected: [saved(2, 2, "a OK", "b OK"), { home: ["home active"] }],
  },
];

/** A window or group of an earlier start of the browser. */
const earlier = (id: string) => id.replace(/_([wg])[^-]+-/, "_$1zzzz-");

interface Row {
  readonly savedId: string;
  readonly url: string;
  readonly windowId: string;
  readonly index: number;
}

/** Saved tabs of one window, in order, from a place on. */
function rows(windowId: string, names: readonly string[], from = 1): Row[] {
  return names.map((name, at) => ({ savedId: `s-${name}`, url: `http://${name}.test/`, windowId, index: from + at }));
}

const restore = (all: readonly { readonly savedId: string }[]): Kind => ({
  case: "restoreTabs",
  value: { savedIds: all.map(({ savedId }) => savedId) },
});

const restored = (restoredCount: number, ...items: string[]) => ({ restoredCount, items });

const gone = 2_147_483_000;

const windows: readonly CommandCase[] = [
  {
    id: "restoreTabs-place",
    title: "restoreTabs of every other tab of a window that is still there",
    source: "9",
    chromium: "Opens each at the place that it is given.",
    ours: "They are where they were, behind the tab in front, in the order of their places and not of the ids.",
    run: async (stage) => {
      await stage.open("b");
      await stage.open("d");
      const home = stage.windowId(await stage.home());
      const [a, , c] = rows(home, ["a", "b", "c"]) as [Row, Row, Row];
      return [await does(stage, restore([c, a]), { saved: [a, c] }), await stage.view()];
    },
    expected: [restored(2, "s-c OK as c", "s-a OK as a"), { home: ["home active", "a", "b", "c", "d"] }],
  },
  {
    id: "restoreTabs-window-gone",
    title: "restoreTabs of three tabs whose window is gone",
    source: "sienori/Tab-Session-Manager#571",
    chromium: "Knows no such window.",
    ours: "One new window for all of them, in their order; it does not take the focus and is told as a side effect.",
    run: async (stage) => {
      const saved = rows(stage.windowId(gone), ["a", "b", "c"], 4);
      const result = await does(stage, restore(saved), { saved });
      const [front] = (await stage.browser.windows.list()).filter(({ focused }) => focused);
      return [result, await stage.view(), front?.id === (await stage.home())];
    },
    expected: [
      { ...restored(3, "s-a OK as a", "s-b OK as b", "s-c OK as c"), openedWindowIds: ["w2"] },
      { home: ["home active"], w2: ["a active", "b", "c"] },
      true,
    ],
  },
  {
    id: "restoreTabs-two-windows-gone",
    title: "restoreTabs of tabs of two windows of an earlier start of the browser",
    source: "greatsuspender/thegreatsuspender (session recovery)",
    chromium: "Gives windows other ids at each start.",
    ours: "A new window for each of the old ones.",
    run: async (stage) => {
      const one = rows(earlier(stage.windowId(gone)), ["a", "b"]);
      const two = rows(earlier(stage.windowId(gone - 1)), ["c", "d"]);
      const saved = [...one, ...two];
      return [await does(stage, restore(saved), { saved }), await stage.view()];
    },
    expected: [
      {
        ...restored(4, "s-a OK as a", "s-b OK as b", "s-c OK as c", "s-d OK as d"),
        openedWindowIds: ["w2", "w3"],
      },
      { home: ["home active"], w2: ["a active", "b"], w3: ["c active", "d"] },
    ],
  },
  {
    id: "restoreTabs-alone",
    title: "restoreTabs of single tabs of windows of an earlier start: one saved for later, one closed and undone",
    source: "tried here",
    chromium: "Gives windows other ids at each start.",
    ours: "The one saved for later comes to the window in front, the closed one gets its window again.",
    run: async (stage) => {
      const [later] = rows(earlier(stage.windowId(gone)), ["later"]) as [Row];
      const [undone] = rows(earlier(stage.windowId(gone - 1)), ["undone"]) as [Row];
      const saved = [later, { ...undone, closed: true }];
      return [await does(stage, restore(saved), { saved }), await stage.view()];
    },
    expected: [
      { ...restored(2, "s-later OK as later", "s-undone OK as undone"), openedWindowIds: ["w2"] },
      { home: ["home active", "later"], w2: ["undone active"] },
    ],
  },
  {
    id: "restoreTabs-second-call",
    title: "Two restoreTabs, each with one tab of the same window that is gone",
    source: "tried here",
    chromium: "Knows no such window.",
    ours: "The second tab comes to the window that was opened for the first.",
    run: async (stage) => {
      const [a, b] = rows(stage.windowId(gone - 2), ["a", "b"]) as [Row, Row];
      await does(stage, restore([a]), { saved: [a] });
      return [await does(stage, restore([b]), { saved: [b] }), await stage.view()];
    },
    expected: [restored(1, "s-b OK as b"), { home: ["home active"], w2: ["a active", "b"] }],
  },
  {
    id: "restoreTabs-popup",
    title: "restoreTabs of a tab whose window is a popup",
    source: "6",
    chromium: "Opens no further tab in a popup.",
    ours: "It gets a normal window.",
    run: async (stage) => {
      const popup = await stage.openWindow("p", "popup");
      const saved = rows(stage.windowId(await stage.windowOf(popup)), ["a"]);
      return [await does(stage, restore(saved), { saved }), await stage.view()];
    },
    expected: [
      { ...restored(1, "s-a OK as a"), openedWindowIds: ["w3"] },
      { home: ["home active"], "w2 popup": ["p active"], w3: ["a active"] },
    ],
  },
];

const single: readonly CommandCase[] = [
  {
    id: "restoreTabs-bad",
    title: "restoreTabs with addresses that cannot be opened, and an id that nobody kept, among others",
    source: "8",
    chromium: "Refuses some, and opens others as empty tabs.",
    ours: "REFUSED_URL and NOT_FOUND; the others come back; no empty tab.",
    run: async (stage) => {
      const home = stage.windowId(await stage.home());
      const saved = [
        ...rows(home, ["a"]),
        { savedId: "s-js", url: "javascript:alert(1)", windowId: home, index: 2 },
        { savedId: "s-data", url: "data:text/html,x", windowId: home, index: 3 },
        ...rows(home, ["b"], 4),
      ];
      const all = [...saved, { savedId: "s-nobody" }];
      return [await does(stage, restore(all), { saved }), await stage.view()];
    },
    expected: [
      restored(2, "s-a OK as a", "s-js REFUSED_URL", "s-data REFUSED_URL", "s-b OK as b", "s-nobody NOT_FOUND"),
      { home: ["home active", "a", "b"] },
    ],
  },
  {
    id: "restoreTabs-pinned",
    title: "restoreTabs of pinned and muted tabs into a new window",
    source: "gioxx/MarvellousSuspender#363",
    chromium: "Opens pinned tabs in front of the others, and cannot open muted ones.",
    ours: "Pins and mutes are as they were.",
    run: async (stage) => {
      const [a, b, c, d] = rows(stage.windowId(gone), ["a", "b", "c", "d"], 0) as [Row, Row, Row, Row];
      const saved = [{ ...a, pinned: true }, { ...b, pinned: true, muted: true }, { ...c, muted: true }, d];
      await does(stage, restore(saved), { saved });
      return stage.view();
    },
    expected: { home: ["home active"], w2: ["a active pinned", "b pinned muted", "c muted", "d"] },
  },
  {
    id: "restoreTabs-redelivered",
    title: "restoreTabs delivered twice under one id",
    source: "11",
    chromium: "Has no memory of it.",
    ours: "The second time the stored result is the answer.",
    run: async (stage) => {
      const saved = rows(stage.windowId(await stage.home()), ["a"]);
      const id = crypto.randomUUID();
      const first = await does(stage, restore(saved), { saved, id });
      return [first, await does(stage, restore(saved), { saved, id }), await stage.view()];
    },
    expected: [restored(1, "s-a OK as a"), restored(1, "s-a OK as a"), { home: ["home active", "a"] }],
  },
  {
    id: "restoreTabs-stopped-after",
    title: "The worker is stopped when the browser has opened a tab of three, before it could say so",
    source: "11",
    chromium: "Has opened some.",
    ours: "The next worker finds what is open, and opens the rest: none twice, none lost.",
    run: async (stage) => {
      const saved = rows(stage.windowId(await stage.home()), ["a", "b", "c"]);
      await stage.world.hang("create", "after");
      const ends = begins(stage, restore(saved), { saved });
      await stage.world.hanging();
      await stage.world.stopWorker();
      return [await ends(), await stage.view()];
    },
    expected: [restored(3, "s-a OK as a", "s-b OK as b", "s-c OK as c"), { home: ["home active", "a", "b", "c"] }],
  },
  {
    id: "restoreTabs-stopped-before",
    title: "The worker is stopped before the browser has opened anything",
    source: "11",
    chromium: "Has opened none.",
    ours: "There is no new tab, so nothing was opened: the next worker opens all.",
    run: async (stage) => {
      const saved = rows(stage.windowId(await stage.home()), ["a"]);
      await stage.world.hang("create", "before");
      const ends = begins(stage, restore(saved), { saved });
      await stage.world.hanging();
      await stage.world.stopWorker();
      return [await ends(), await stage.view()];
    },
    expected: [restored(1, "s-a OK as a"), { home: ["home active", "a"] }],
  },
  {
    id: "restoreTabs-many",
    title: "restoreTabs of 60 tabs of a window that is gone",
    source: "tried here",
    chromium: "Opens them in the order of the calls, several calls at once.",
    ours: "All in order, twenty at a time.",
    run: async (stage) => {
      const names = Array.from({ length: 60 }, (_, n) => `n${n}`);
      const saved = rows(stage.windowId(gone), names);
      const { outcome } = await stage.deliver(restore(saved), { saved });
      const value = outcome.case === "result" ? outcome.value.kind.value : undefined;
      const { w2 } = await stage.view();
      const order = w2?.map((text) => text.replace(" active", "")).join() === names.join();
      return [value !== undefined && "restoredCount" in value ? value.restoredCount : 0, order];
    },
    expected: [60, true],
  },
];

const groups: readonly CommandCase[] = [
  {
    id: "restoreTabs-group-there",
    title: "restoreTabs of a tab from the middle of a group that is still there, and of one that was beside it",
    source: "9",
    chromium: "Takes a tab that is opened between two tabs of a group into it.",
    ours: "Both are where they were; only the one that was in the group is in it.",
    run: async (stage) => {
      const [a, c] = [await stage.open("a"), await stage.open("c")];
      const group = await stage.browser.tabs.group([a, c], { windowId: await stage.home() });
      await stage.view();
      const [, b, , d] = rows(stage.windowId(await stage.home()), ["a", "b", "c", "d"]) as [Row, Row, Row, Row];
      const saved = [{ ...b, groupId: stage.groupId(group) }, d];
      return [await does(stage, restore(saved), { saved }), await stage.view()];
    },
    expected: [
      restored(2, "s-b OK as b", "s-d OK as d"),
      { home: ["home active", "a in g1", "b in g1", "c in g1", "d"], groups: ['g1 of home: "" grey'] },
    ],
  },
  {
    id: "restoreTabs-group-gone",
    title: "restoreTabs of tabs of two groups that are gone, with the window",
    source: "9",
    chromium: "Knows no such groups.",
    ours: "Each group comes back once, with its title and colour.",
    run: async (stage) => {
      const [a, b, c, d] = rows(stage.windowId(gone), ["a", "b", "c", "d"], 0) as [Row, Row, Row, Row];
      const one = { groupId: stage.groupId(gone), groupTitle: "one", groupColour: 6 };
      const two = { groupId: stage.groupId(gone - 1), groupTitle: "two", groupColour: 2 };
      const saved = [{ ...a, ...one }, { ...b, ...one }, c, { ...d, ...two }];
      await does(stage, restore(saved), { saved });
      return stage.view();
    },
    expected: {
      home: ["home active"],
      w2: ["a active in g1", "b in g1", "c", "d in g2"],
      groups: ['g1 of w2: "one" pink', 'g2 of w2: "two" blue'],
    },
  },
  {
    id: "restoreTabs-group-second-call",
    title: "Two restoreTabs, each with one tab of the same group that is gone",
    source: "tried here",
    chromium: "Knows no such group.",
    ours: "The second tab comes to the group that was made for the first.",
    run: async (stage) => {
      const [a, b] = rows(stage.windowId(await stage.home()), ["a", "b"]) as [Row, Row];
      const group = { groupId: earlier(stage.groupId(gone - 3)), groupTitle: "g", groupColour: 5 };
      const [first, second] = [
        { ...a, ...group },
        { ...b, ...group },
      ];
      await does(stage, restore([first]), { saved: [first] });
      return [await does(stage, restore([second]), { saved: [second] }), await stage.view()];
    },
    expected: [
      restored(1, "s-b OK as b"),
      { home: ["home active", "a in g1", "b in g1"], groups: ['g1 of home: "g" green'] },
    ],
  },
  {
    id: "restoreTabs-group-moved",
    title: "restoreTabs of a tab whose group a person took to another window",
    source: "tried here",
    chromium: "Keeps the group's id when it moves.",
    ours: "It comes to its group.",
    run: async (stage) => {
      const a = await stage.openWindow("w");
      const member = await stage.open("m", { in: await stage.windowOf(a) });
      const group = await stage.browser.tabs.group([member], { windowId: await stage.windowOf(a) });
      await stage.view();
      const [b] = rows(stage.windowId(await stage.home()), ["b"]) as [Row];
      const saved = [{ ...b, groupId: stage.groupId(group) }];
      await does(stage, restore(saved), { saved });
      return stage.view();
    },
    expected: {
      home: ["home active"],
      w2: ["w active", "m in g1", "b in g1"],
      groups: ['g1 of w2: "" grey'],
    },
  },
];

export const savedCases: readonly CommandCase[] = [...saving, ...windows, ...single, ...groups];
