/** What the browser does with tabs that it has put to sleep. */
import type { BrowserCase } from "../case.js";

export const sleeping: readonly BrowserCase[] = [
  {
    id: "sleep-id",
    title: "A tab is put to sleep",
    source: "3",
    chromium: "Gives it a new id, and tells that one tab has been replaced by the other; the old id is gone.",
    ours: "The delta follows the id; commands take the old one, also after the worker was stopped.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.changes();
      const now = await stage.sleep(a);
      const refused = await stage.refusal(stage.browser.tabs.update(a, { muted: true }));
      return [now === a, await stage.changes(), refused[0], refused[1] === a, await stage.view()];
    },
    expected: [false, ["replaced a by a", "tab a"], "noTab", true, { home: ["home active", "a asleep"] }],
  },
  {
    id: "sleep-keeps",
    title: "A tab is put to sleep that is pinned, grouped or muted",
    source: "3",
    chromium: "Keeps pin and group, and forgets that it was muted.",
    ours: "The delta has it as it is: not muted.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      await tabs.update(a, { pinned: true, muted: true });
      await tabs.update(b, { muted: true });
      await tabs.group([b], { windowId: await stage.home() });
      await stage.sleep(a);
      await stage.sleep(b);
      return stage.view();
    },
    expected: { home: ["a pinned asleep", "home active", "b asleep in g1"], groups: ['g1 of home: "" grey'] },
  },
  {
    id: "sleep-front",
    title: "The tab in front is put to sleep",
    source: "tried here",
    chromium: "Does so; it stays in front.",
    ours: "The delta has the new id as the active tab.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.browser.tabs.update(a, { active: true });
      await stage.sleep(a);
      return stage.view();
    },
    expected: { home: ["home", "a active asleep"] },
  },
  {
    id: "sleep-asking",
    title: "A tab is put to sleep while its page asks",
    source: "tried here",
    chromium: "Does so, and the question is gone with what was typed.",
    ours: "The tab is still open: BLOCKED_BY_PAGE; its new id is in the delta.",
    run: async (stage) => {
      const guarded = await stage.openGuarded("g");
      const ended = await stage.ended(stage.browser.tabs.remove([guarded]));
      await stage.sleep(guarded);
      return [ended, await stage.view()];
    },
    expected: ["pending", { home: ["home", "g/guard active asleep"] }],
  },
  {
    id: "sleep-loading",
    title: "A tab is put to sleep while it goes to another address",
    source: "tried here",
    chromium: "Forgets the other address.",
    ours: "The delta has the address that the tab shows.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.browser.tabs.update(a, { url: "http://b.test/silent" });
      await stage.sleep(a);
      return stage.view();
    },
    expected: { home: ["home active", "a asleep"] },
  },
  {
    id: "sleep-list",
    title: "Listing tabs that are asleep",
    source: "17",
    chromium: "Wakes none of them.",
    ours: "Lists, searches and snapshots leave them asleep.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const ids = [await stage.open("a"), await stage.open("b")];
      const asleep = [await stage.sleep(ids[0] ?? 0), await stage.sleep(ids[1] ?? 0)];
      await tabs.list();
      await tabs.list(await stage.home());
      await tabs.get(asleep[0] ?? 0);
      return stage.view();
    },
    expected: { home: ["home active", "a asleep", "b asleep"] },
  },
  {
    id: "sleep-change",
    title: "Muting, pinning, moving and grouping a tab that is asleep",
    source: "17",
    chromium: "Leaves it asleep, under the same id.",
    ours: "OK, and nothing is woken.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const [a, b] = [await stage.sleep(await stage.open("a")), await stage.sleep(await stage.open("b"))];
      await tabs.update(a, { muted: true, pinned: true });
      const windowId = await stage.windowOf(await stage.openWindow("w"));
      await tabs.move(b, { windowId, index: -1 });
      await tabs.group([b], { windowId });
      return [(await tabs.get(a)) !== undefined, (await tabs.get(b)) !== undefined, await stage.view()];
    },
    expected: [
      true,
      true,
      {
        home: ["a pinned muted asleep", "home active"],
        w2: ["w active", "b asleep in g1"],
        groups: ['g1 of w2: "" grey'],
      },
    ],
  },
  {
    id: "wake-show",
    title: "Showing a tab that is asleep",
    source: "3",
    chromium: "Wakes it, and it keeps the id that it has.",
    ours: "activateTab takes the id from before and the one it has.",
    run: async (stage) => {
      const a = await stage.sleep(await stage.open("a"));
      const { id, pendingUrl, loading } = await stage.browser.tabs.update(a, { active: true });
      return [id === a, pendingUrl, loading, await stage.view()];
    },
    expected: [true, "http://a.test/", true, { home: ["home", "a active"] }],
  },
  {
    id: "wake-load",
    title: "Reloading a tab that is asleep, or sending it elsewhere",
    source: "17",
    chromium: "Wakes it behind the others, under the same id.",
    ours: "OK.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const [a, b] = [await stage.sleep(await stage.open("a")), await stage.sleep(await stage.open("b"))];
      await tabs.reload(a, false);
      await tabs.update(b, { url: "http://c.test/" });
      await stage.view();
      return [(await tabs.get(a)) !== undefined, (await tabs.get(b)) !== undefined, await stage.view()];
    },
    expected: [true, true, { home: ["home active", "a", "c"] }],
  },
  {
    id: "sleep-close",
    title: "Closing a tab that is asleep by its old and by its new id",
    source: "3",
    chromium: "Refuses the old id and closes the new one.",
    ours: "closeTabs closes it by either.",
    run: async (stage) => {
      const a = await stage.open("a");
      const now = await stage.sleep(a);
      const { tabs } = stage.browser;
      return [await stage.ended(tabs.remove([a])), await stage.ended(tabs.remove([now])), await stage.view()];
    },
    expected: ["noTab", "done", { home: ["home active"] }],
  },
];
