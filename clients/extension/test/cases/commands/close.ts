/** Cases of commands that close tabs. */
import type { CommandCase } from "../case.js";
import type { CommandStage, Kind } from "../stage.js";
import { begins, does } from "./brief.js";

const close = (stage: CommandStage, ids: readonly number[], force?: boolean): Kind => ({
  case: "closeTabs",
  value: { tabIds: ids.map((id) => stage.tabId(id)), ...(force === undefined ? {} : { force }) },
});

const closed = (closedCount: number, ...items: string[]) => ({ closedCount, items });

/** A guarded tab that a command has asked to close, and whose page asks now. */
async function asked(stage: CommandStage): Promise<number> {
  const guarded = await stage.openGuarded("g");
  await stage.command(close(stage, [guarded]), { short: true });
  return guarded;
}

const once = "A remove that comes half a second or more after the question is up destroys the tab without an answer.";

const plain: readonly CommandCase[] = [
  {
    id: "closeTabs-order",
    title: "closeTabs of three tabs, the middle one of which is gone, one of them named twice",
    source: "1",
    chromium: "Stops at the one that is gone.",
    ours: "Each of the others is closed; the one that is gone is NOT_FOUND; one item for each tab.",
    run: async (stage) => {
      const [a, gone, b] = [await stage.open("a"), await stage.open("gone"), await stage.open("b")];
      await stage.world.close(gone);
      return [await does(stage, close(stage, [a, gone, b, a])), await stage.view()];
    },
    expected: [closed(2, "a OK", "gone NOT_FOUND", "b OK"), { home: ["home active"] }],
  },
  {
    id: "closeTabs-stale",
    title: "closeTabs with an id from before the browser was restarted",
    source: "tried here",
    chromium: "Knows nothing of earlier starts, and may use the number for another tab.",
    ours: "NOT_FOUND; the tab that has the number now is left alone.",
    run: async (stage) => {
      const a = await stage.open("a");
      const value = { tabIds: [stage.staleId(a)] };
      return [await does(stage, { case: "closeTabs", value }), await stage.view()];
    },
    expected: [closed(0, "a NOT_FOUND"), { home: ["home active", "a"] }],
  },
  {
    id: "closeTabs-replaced",
    title: "closeTabs with the old and the new id of a tab that was put to sleep",
    source: "3",
    chromium: "Knows the new id only.",
    ours: "One tab is closed, and there is one item, under the id that was named first.",
    run: async (stage) => {
      const a = await stage.open("a");
      const now = await stage.sleep(a);
      return [await does(stage, close(stage, [a, now])), await stage.view()];
    },
    expected: [closed(1, "a OK"), { home: ["home active"] }],
  },
  {
    id: "closeTabs-window",
    title: "closeTabs of all tabs of a window",
    source: "tried here",
    chromium: "Closes the window, too.",
    ours: "The window is told as a side effect.",
    run: async (stage) => {
      const a = await stage.openWindow("a");
      const b = await stage.open("b", { in: await stage.windowOf(a) });
      return [await does(stage, close(stage, [a, b])), await stage.view()];
    },
    expected: [{ ...closed(2, "a OK", "b OK"), closedWindowIds: ["w2"] }, { home: ["home active"] }],
  },
  {
    id: "closeTabs-group",
    title: "closeTabs of all tabs of a group, and of one tab of another",
    source: "tried here",
    chromium: "Removes the group that is empty then.",
    ours: "The group that is gone is told as a side effect, the other one is not.",
    run: async (stage) => {
      const ids = [await stage.open("a"), await stage.open("b"), await stage.open("c")] as const;
      await stage.browser.tabs.group([ids[0]], { windowId: await stage.home() });
      await stage.view();
      await stage.browser.tabs.group([ids[1], ids[2]], { windowId: await stage.home() });
      await stage.view();
      return does(stage, close(stage, [ids[0], ids[1]]));
    },
    expected: { ...closed(2, "a OK", "b OK"), removedGroupIds: ["g1"] },
  },
  {
    id: "closeTabs-all",
    title: "closeTabs of every tab there is",
    source: "moneytoo/DontCloseWindowWithLastTab",
    chromium: "Ends with its last window, and the device and the answer with it.",
    ours: "One empty tab is opened first, and told as a side effect.",
    fakeOnly: "the test's own page would be closed, too",
    run: async (stage) => {
      const tabs = await stage.browser.tabs.list();
      const ids = tabs.map(({ id }) => id);
      return [await does(stage, close(stage, ids)), await stage.view()];
    },
    expected: [{ ...closed(1, "home OK"), openedTabIds: ["chrome://newtab/"] }, { home: ["chrome://newtab/ active"] }],
  },
  {
    id: "closeTabs-dragged",
    title: "closeTabs while a person drags a tab, for a moment and for ever",
    source: "15",
    chromium: "Refuses: tabs cannot be edited right now.",
    ours: "A short drag is waited for; after that the tabs are BUSY, and were not asked.",
    fakeOnly: "nobody can drag a tab in a headless browser",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      stage.world.drag(1);
      const first = await does(stage, close(stage, [a]));
      stage.world.drag(1000);
      const second = await does(stage, close(stage, [b]));
      stage.world.drag(0);
      return [first, second, await does(stage, close(stage, [b]))];
    },
    expected: [closed(1, "a OK"), closed(0, "b BUSY"), closed(1, "b OK")],
  },
  {
    id: "closeTabs-redelivered",
    title: "closeTabs delivered twice under one id, with a new tab at the same address between",
    source: "11",
    chromium: "Has no memory of it.",
    ours: "The second time the stored result is the answer, and nothing is closed.",
    run: async (stage) => {
      const a = await stage.open("a");
      const kind = close(stage, [a]);
      const first = await does(stage, kind, { id: `twice${a}` });
      await stage.open("a");
      return [first, await does(stage, kind, { id: `twice${a}` }), await stage.view()];
    },
    expected: [closed(1, "a OK"), closed(1, "a OK"), { home: ["home active", "a"] }],
  },
  {
    id: "closeTabs-many",
    title: "closeTabs of 120 tabs in two windows",
    source: "csandapp/tab-snooze-extension-continued PR#50",
    chromium: "Takes about 20 milliseconds for each.",
    ours: "All are closed, fifty at a time, each with its item.",
    run: async (stage) => {
      const first = await stage.openWindow("first");
      const ids = [first];
      const [other, home] = [await stage.windowOf(first), await stage.home()];
      for (let n = 0; n < 119; n++) {
        const windowId = n % 2 === 0 ? other : home;
        const made = await stage.browser.tabs.create({ url: "http://many.test/", windowId, active: false });
        ids.push(made.id);
      }
      await stage.view();
      const { outcome } = await stage.deliver(close(stage, ids));
      const value = outcome.case === "result" ? outcome.value.kind.value : undefined;
      const result = value !== undefined && "closedCount" in value ? value : undefined;
      return [result?.closedCount, result?.items.length, await stage.view()];
    },
    expected: [120, 120, { home: ["home active"] }],
  },
];

const guarded: readonly CommandCase[] = [
  {
    id: "closeTabs-guarded",
    title: "closeTabs of a tab whose page asks, and one that does not",
    source: "2",
    chromium: "Closes the plain tab, brings the guarded one to the front, and never says what the person answers.",
    ours: "The plain one is OK, the guarded one BLOCKED_BY_PAGE when it is time to answer, and still there.",
    run: async (stage) => {
      const [g, p] = [await stage.openGuarded("g"), await stage.open("p")];
      return [await does(stage, close(stage, [g, p]), { short: true }), await stage.view()];
    },
    expected: [closed(1, "g/guard BLOCKED_BY_PAGE", "p OK"), { home: ["home", "g/guard active"] }],
  },
  {
    id: "closeTabs-guarded-redelivered",
    title: "The same closeTabs is delivered again while the page asks",
    source: "2",
    chromium: once,
    ours: "The stored result is the answer; no second remove.",
    run: async (stage) => {
      const kind = close(stage, [await stage.openGuarded("g")]);
      const id = crypto.randomUUID();
      const first = await does(stage, kind, { short: true, id });
      return [first, await does(stage, kind, { short: true, id }), await stage.view()];
    },
    expected: [
      closed(0, "g/guard BLOCKED_BY_PAGE"),
      closed(0, "g/guard BLOCKED_BY_PAGE"),
      { home: ["home", "g/guard active"] },
    ],
  },
  {
    id: "closeTabs-guarded-second-command",
    title: "Another closeTabs names a tab whose page asks already",
    source: "2",
    chromium: once,
    ours: "BLOCKED_BY_PAGE at once, without a remove: the extension remembers whom it has asked.",
    run: async (stage) => {
      const g = await asked(stage);
      return [await does(stage, close(stage, [g, await stage.open("p")])), await stage.view()];
    },
    expected: [closed(1, "g/guard BLOCKED_BY_PAGE", "p OK"), { home: ["home", "g/guard active"] }],
  },
  {
    id: "closeTabs-guarded-two-at-once",
    title: "Two closeTabs for the same guarded tab at the same time",
    source: "2",
    chromium: once,
    ours: "One of them asks; the other one is BLOCKED_BY_PAGE at once.",
    run: async (stage) => {
      const g = await stage.openGuarded("g");
      const first = begins(stage, close(stage, [g]), { short: true });
      await stage.world.asked();
      const second = begins(stage, close(stage, [g]), { short: true });
      return [await second(), await first(), await stage.view()];
    },
    expected: [
      closed(0, "g/guard BLOCKED_BY_PAGE"),
      closed(0, "g/guard BLOCKED_BY_PAGE"),
      { home: ["home", "g/guard active"] },
    ],
  },
  {
    id: "closeTabs-guarded-by-url",
    title: "closeTabsByUrl matches a tab whose page asks already",
    source: "2",
    chromium: once,
    ours: "BLOCKED_BY_PAGE, without a remove.",
    run: async (stage) => {
      await asked(stage);
      const value = { url: "http://g.test/*" };
      return [await does(stage, { case: "closeTabsByUrl", value }), await stage.view()];
    },
    expected: [
      { closed: false, reason: "", ...closed(0, "g/guard BLOCKED_BY_PAGE") },
      { home: ["home", "g/guard active"] },
    ],
  },
  {
    id: "closeTabs-guarded-save",
    title: "saveTabs with close names a tab whose page asks already",
    source: "2",
    chromium: once,
    ours: "It is saved, and still open.",
    run: async (stage) => {
      const g = await asked(stage);
      const value = { tabIds: [stage.tabId(g)], close: true };
      return [await does(stage, { case: "saveTabs", value }), await stage.view()];
    },
    expected: [{ savedCount: 1, ...closed(0, "g/guard OK") }, { home: ["home", "g/guard active"] }],
  },
  {
    id: "closeTabs-guarded-leave",
    title: "The person says leave while closeTabs waits",
    source: "2",
    chromium: "Closes the tab.",
    ours: "OK.",
    run: async (stage) => {
      const ends = begins(stage, close(stage, [await stage.openGuarded("g")]));
      await stage.world.asked();
      await stage.world.answer("leave");
      return [await ends(), await stage.view()];
    },
    expected: [closed(1, "g/guard OK"), { home: ["home active"] }],
  },
  {
    id: "closeTabs-guarded-late-leave",
    title: "The person says leave after closeTabs has answered",
    source: "2",
    chromium: "Closes the tab.",
    ours: "The tab is gone in the next delta; the answer that was given stays.",
    run: async (stage) => {
      await asked(stage);
      await stage.changes();
      await stage.world.answer("leave");
      const view = await stage.view();
      return [view, (await stage.changes()).filter((change) => change.startsWith("removed"))];
    },
    expected: [{ home: ["home active"] }, ["removed g/guard"]],
  },
  {
    id: "closeTabs-guarded-stay",
    title: "The person says stay, and another closeTabs names the tab",
    source: "2",
    chromium: "Does not settle the call that asked, and tells of nothing: the answer cannot be seen.",
    ours: "BLOCKED_BY_PAGE, and nobody is asked again, until the page is seen to run.",
    run: async (stage) => {
      const g = await asked(stage);
      await stage.world.answer("stay");
      const second = await does(stage, close(stage, [g]));
      await stage.world.answer("leave"); // there is nothing to answer
      return [second, await stage.view()];
    },
    expected: [closed(0, "g/guard BLOCKED_BY_PAGE"), { home: ["home", "g/guard active"] }],
  },
  {
    id: "closeTabs-guarded-window",
    title: "closeTabs of a window's last tab, whose page asks, and then once more",
    source: "2",
    chromium: "The window stays while the page asks, and goes with the tab.",
    ours: "BLOCKED_BY_PAGE both times; the window is still there.",
    run: async (stage) => {
      const g = await stage.openWindow("g/guard");
      await stage.world.click(g);
      const first = await does(stage, close(stage, [g]), { short: true });
      const second = await does(stage, close(stage, [g]));
      return [first, second, await stage.view()];
    },
    expected: [
      closed(0, "g/guard BLOCKED_BY_PAGE"),
      closed(0, "g/guard BLOCKED_BY_PAGE"),
      { home: ["home active"], w2: ["g/guard active"] },
    ],
  },
  {
    id: "closeTabs-unguarded-page",
    title: "closeTabs of a page that would ask, on which nobody did anything",
    source: "2",
    chromium: "Closes it at once.",
    ours: "OK.",
    run: async (stage) => does(stage, close(stage, [await stage.open("g/guard")])),
    expected: closed(1, "g/guard OK"),
  },
  {
    id: "closeTabs-leaving",
    title: "navigateTab makes a page ask, and closeTabs names the tab while it does",
    source: "tried here",
    chromium:
      "Even the first remove destroys the tab: the question is up already. The tab has an address that it waits for.",
    ours: "BUSY, and the tab is not asked to close.",
    run: async (stage) => {
      const g = await stage.openGuarded("g");
      const value = { tabId: stage.tabId(g), url: "http://next.test/" };
      const going = begins(stage, { case: "navigateTab", value }, { short: true });
      await stage.world.asked();
      const result = await does(stage, close(stage, [g]));
      await going();
      await stage.world.answer("leave");
      return [result, await stage.view()];
    },
    expected: [closed(0, "next BUSY"), { home: ["home", "next active"] }],
  },
];

const forced: readonly CommandCase[] = [
  {
    id: "closeTabs-force",
    title: "closeTabs with force of a tab whose page asks, one that does not, and none of the others",
    source: "2",
    chromium: "A second remove destroys the tab.",
    ours: "Each named tab that is still open is asked once more; a guarded tab that was not named stays, unasked.",
    run: async (stage) => {
      const [g, p] = [await stage.openGuarded("g"), await stage.open("p")];
      const other = await stage.openGuarded("other");
      const result = await does(stage, close(stage, [g, p], true));
      const view = await stage.view();
      return [result, view, await does(stage, close(stage, [other]), { short: true })];
    },
    expected: [
      closed(2, "g/guard OK", "p OK"),
      { home: ["home", "other/guard active"] },
      closed(0, "other/guard BLOCKED_BY_PAGE"),
    ],
  },
  {
    id: "closeTabs-force-after",
    title: "closeTabs with force of a tab that an earlier command asked",
    source: "2",
    chromium: "The remove destroys the tab.",
    ours: "OK.",
    run: async (stage) => {
      const g = await asked(stage);
      return [await does(stage, close(stage, [g], true)), await stage.view()];
    },
    expected: [closed(1, "g/guard OK"), { home: ["home active"] }],
  },
  {
    id: "closeTabs-force-after-stay",
    title: "closeTabs with force after the person said stay",
    source: "2",
    chromium: "Asks again, and the next remove destroys the tab.",
    ours: "OK.",
    run: async (stage) => {
      const g = await asked(stage);
      await stage.world.answer("stay");
      return [await does(stage, close(stage, [g], true)), await stage.view()];
    },
    expected: [closed(1, "g/guard OK"), { home: ["home active"] }],
  },
  {
    id: "closeTabsByUrl-force",
    title: "closeTabsByUrl with force",
    source: "2",
    chromium: "A second remove destroys the tab.",
    ours: "What matched is closed, nothing else.",
    run: async (stage) => {
      await stage.openGuarded("g");
      await stage.openGuarded("other");
      const value = { url: "http://g.test/*", force: true };
      return [await does(stage, { case: "closeTabsByUrl", value }), await stage.view()];
    },
    expected: [{ closed: true, reason: "", ...closed(1, "g/guard OK") }, { home: ["home", "other/guard active"] }],
  },
  {
    id: "closeTabsByUrl-none",
    title: "closeTabsByUrl where nothing matches",
    source: "tried here",
    chromium: "Is not asked.",
    ours: "closed is false, and the reason not_found.",
    run: async (stage) => does(stage, { case: "closeTabsByUrl", value: { url: "http://nowhere.test/*" } }),
    expected: { closed: false, reason: "not_found", ...closed(0) },
  },
];

const stopped: readonly CommandCase[] = [
  {
    id: "closeTabs-stopped-guarded",
    title: "The worker is stopped while a page asks, and afterwards another closeTabs names the tab",
    source: "2, 11",
    chromium: "The question stays up without the worker that asked.",
    ours: "UNKNOWN_OUTCOME for the first, BLOCKED_BY_PAGE for the second; the plain tab is OK; no second remove.",
    run: async (stage) => {
      const [g, p] = [await stage.openGuarded("g"), await stage.open("p")];
      const ends = begins(stage, close(stage, [g, p]));
      await stage.world.asked();
      await stage.view();
      await stage.world.stopWorker();
      return [await ends(), await does(stage, close(stage, [g])), await stage.view()];
    },
    expected: [
      closed(1, "g/guard UNKNOWN_OUTCOME", "p OK"),
      closed(0, "g/guard BLOCKED_BY_PAGE"),
      { home: ["home", "g/guard active"] },
    ],
  },
  {
    id: "closeTabs-stopped-after",
    title: "The worker is stopped after the tabs were closed, before it could say so",
    source: "11",
    chromium: "Has closed them.",
    ours: "The next worker reads that they are gone: OK.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      await stage.world.hang("remove", "after");
      const ends = begins(stage, close(stage, [a, b]));
      await stage.world.hanging();
      await stage.world.stopWorker();
      return [await ends(), await stage.view()];
    },
    expected: [closed(2, "a OK", "b OK"), { home: ["home active"] }],
  },
  {
    id: "closeTabs-stopped-before",
    title: "The worker is stopped just before the browser gets the call, and force closes the tab later",
    source: "11",
    chromium: "Was not asked.",
    ours: "UNKNOWN_OUTCOME: it looks like a page that asks. Nothing is asked twice; force closes it.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.world.hang("remove", "before");
      const ends = begins(stage, close(stage, [a]));
      await stage.world.hanging();
      await stage.world.stopWorker();
      const first = await ends();
      return [first, await does(stage, close(stage, [a])), await does(stage, close(stage, [a], true))];
    },
    expected: [closed(0, "a UNKNOWN_OUTCOME"), closed(0, "a BLOCKED_BY_PAGE"), closed(1, "a OK")],
  },
  {
    id: "closeTabs-stopped-force",
    title: "The worker is stopped while closeTabs with force waits between its two calls",
    source: "2, 11",
    chromium: "The question stays up.",
    ours: "The next worker closes it: exactly this tab was approved for that. No other tab is touched.",
    run: async (stage) => {
      const g = await stage.openGuarded("g");
      await stage.openGuarded("other");
      const ends = begins(stage, close(stage, [g], true));
      await stage.world.asked();
      await stage.world.stopWorker();
      return [await ends(), await stage.view()];
    },
    expected: [closed(1, "g/guard OK"), { home: ["home", "other/guard active"] }],
  },
];

export const closeCases: readonly CommandCase[] = [...plain, ...guarded, ...forced, ...stopped];
