/** What the browser does with pages that ask the person before they are left. */
import type { BrowserCase } from "../case.js";

export const asking: readonly BrowserCase[] = [
  {
    id: "ask-close",
    title: "Closing a tab whose page asks, together with one that does not, and then once more",
    source: "2",
    chromium:
      "Closes the plain tab, brings the guarded one to the front and keeps the call open; a second call destroys it without an answer.",
    ours: "A tab is asked to close once; it is BLOCKED_BY_PAGE at the deadline, and no retry or redelivery asks again.",
    run: async (stage) => {
      const [guarded, plain] = [await stage.openGuarded("g"), await stage.open("p")];
      const first = await stage.ended(stage.browser.tabs.remove([guarded, plain]));
      const between = await stage.view();
      return [first, between, await stage.ended(stage.browser.tabs.remove([guarded])), await stage.view()];
    },
    expected: ["pending", { home: ["home", "g/guard active"] }, "done", { home: ["home active"] }],
  },
  {
    id: "ask-close-soon",
    title: "Closing a tab once more right after its page has asked",
    source: "tried here",
    chromium: "Does nothing in the first half second; the call stays open, and one after that closes the tab.",
    ours: "force waits before it calls again, and reads back whether the tab is gone.",
    run: async (stage) => {
      for (let tries = 1; ; tries++) {
        const guarded = await stage.openGuarded("g");
        const first = stage.browser.tabs.remove([guarded]).catch(() => {});
        await stage.world.asked();
        const second = await stage.ended(stage.browser.tabs.remove([guarded]));
        if (second === "done" && tries < 5) {
          await stage.world.answer("leave"); // gone: on a busy machine the second call may come too late
          continue;
        }
        const between = await stage.view();
        const third = await stage.ended(stage.browser.tabs.remove([guarded]));
        return [second, between, third, await stage.ended(first), await stage.view()];
      }
    },
    expected: ["pending", { home: ["home", "g/guard active"] }, "done", "done", { home: ["home active"] }],
  },
  {
    id: "ask-named-twice",
    title: "Closing a tab whose page asks, and naming it twice in one call",
    source: "tried here",
    chromium: "Keeps the call open; the tab stays.",
    ours: "Ids that are named twice are one target.",
    run: async (stage) => {
      const guarded = await stage.openGuarded("g");
      return [await stage.ended(stage.browser.tabs.remove([guarded, guarded])), await stage.view()];
    },
    expected: ["pending", { home: ["home", "g/guard active"] }],
  },
  {
    id: "ask-untouched",
    title: "Closing a tab whose page would ask, but on which nobody has done anything",
    source: "2",
    chromium: "Closes it at once.",
    ours: "OK; nothing was typed that could be lost.",
    run: async (stage) => {
      const guarded = await stage.open("g/guard");
      return [await stage.ended(stage.browser.tabs.remove([guarded])), await stage.view()];
    },
    expected: ["done", { home: ["home active"] }],
  },
  {
    id: "ask-stay",
    title: "The person stays on the page",
    source: "2",
    chromium: "Keeps the tab; the call never ends.",
    ours: "Nothing waits for the call itself: the deadline ends the wait, and the tab is BLOCKED_BY_PAGE.",
    run: async (stage) => {
      const guarded = await stage.openGuarded("g");
      const call = stage.browser.tabs.remove([guarded]);
      const before = await stage.ended(call);
      await stage.world.answer("stay");
      return [before, await stage.endedSoon(call), await stage.view()];
    },
    expected: ["pending", "pending", { home: ["home", "g/guard active"] }],
  },
  {
    id: "ask-leave",
    title: "The person leaves the page",
    source: "2",
    chromium: "Closes the tab and ends the call.",
    ours: "OK, if it comes within the deadline; later it is a delta.",
    run: async (stage) => {
      const guarded = await stage.openGuarded("g");
      const call = stage.browser.tabs.remove([guarded]);
      const before = await stage.ended(call);
      await stage.world.answer("leave");
      return [before, await stage.endedSoon(call), await stage.view()];
    },
    expected: ["pending", "done", { home: ["home active"] }],
  },
  {
    id: "ask-two",
    title: "Closing two tabs whose pages ask and one that does not",
    source: "2",
    chromium: "Closes the plain one; both others ask at once, and either may be in front.",
    ours: "One outcome for each: OK, and BLOCKED_BY_PAGE twice.",
    run: async (stage) => {
      const [a, b, p] = [await stage.openGuarded("a"), await stage.openGuarded("b"), await stage.open("p")];
      const ended = await stage.ended(stage.browser.tabs.remove([a, b, p]));
      await stage.world.asked(2);
      const before = await stage.tabNames();
      await stage.world.answer("leave");
      return [ended, before, await stage.view()];
    },
    expected: ["pending", ["home", "a/guard", "b/guard"], { home: ["home active"] }],
  },
  {
    id: "ask-behind",
    title: "A page asks in a window behind",
    source: "tried here",
    chromium: "Brings the tab to the front of its own window.",
    ours: "The tab is active in the delta.",
    run: async (stage) => {
      const windowId = await stage.windowOf(await stage.openWindow("a"));
      const guarded = await stage.openGuarded("g", { in: windowId });
      const before = await stage.view();
      return [before, await stage.ended(stage.browser.tabs.remove([guarded])), await stage.view()];
    },
    expected: [
      { home: ["home active"], w2: ["a active", "g/guard"] },
      "pending",
      { home: ["home active"], w2: ["a", "g/guard active"] },
    ],
  },
  {
    id: "ask-reload",
    title: "Reloading a page that asks",
    source: "2",
    chromium: "Ends the call at once, while the page asks and nothing is loaded.",
    ours: "reloadTabs waits for a sign that it loads; without one the outcome is UNKNOWN_OUTCOME.",
    run: async (stage) => {
      const guarded = await stage.openGuarded("g");
      await stage.changes();
      const ended = await stage.ended(stage.browser.tabs.reload(guarded, false));
      await stage.world.asked();
      const loaded = (await stage.changes()).some((change) => change.endsWith("loading"));
      return [ended, loaded, await stage.view()];
    },
    expected: ["done", false, { home: ["home", "g/guard active"] }],
  },
  {
    id: "ask-navigate",
    title: "Sending a page that asks to another address",
    source: "tried here",
    chromium: "Ends the call at once with the new address as pending; the page stays until the person leaves it.",
    ours: "navigateTab waits until the page is left, and fails with what the tab still shows where it is not.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const guarded = await stage.openGuarded("g");
      const ended = await stage.ended(tabs.update(guarded, { url: "http://b.test/" }));
      await stage.world.asked();
      const { url, pendingUrl } = (await tabs.get(guarded)) ?? {};
      await stage.world.answer("leave");
      return [ended, url, pendingUrl, await stage.view()];
    },
    expected: ["done", "http://g.test/guard", "http://b.test/", { home: ["home", "b active"] }],
  },
  {
    id: "ask-navigate-close",
    title: "Closing a tab whose page asks because it was sent elsewhere",
    source: "tried here",
    chromium: "Destroys it at once: the question that is open counts as asked.",
    ours: "closeTabs leaves a tab alone that one of our own commands has made ask.",
    run: async (stage) => {
      const guarded = await stage.openGuarded("g");
      await stage.browser.tabs.update(guarded, { url: "http://b.test/" });
      await stage.world.asked();
      await stage.patience();
      return [await stage.ended(stage.browser.tabs.remove([guarded])), await stage.view()];
    },
    expected: ["done", { home: ["home active"] }],
  },
  {
    id: "ask-others",
    title: "Other tabs while a page asks",
    source: "2",
    chromium: "Opens, moves, pins and closes others, and moves even the tab that asks.",
    ours: "Commands run beside one that waits.",
    run: async (stage) => {
      const { tabs } = stage.browser;
      const [guarded, a, b] = [await stage.openGuarded("g"), await stage.open("a"), await stage.open("b")];
      const ended = await stage.ended(tabs.remove([guarded]));
      await tabs.update(a, { pinned: true });
      await tabs.remove([b]);
      await tabs.move(guarded, { index: -1 });
      await stage.open("c");
      return [ended, await stage.view()];
    },
    expected: ["pending", { home: ["a pinned", "home", "g/guard active", "c"] }],
  },
  {
    id: "ask-sleep",
    title: "Putting a page to sleep that would ask",
    source: "2",
    chromium: "Does so without a question, and what was typed is lost; asleep, the tab closes at once.",
    ours: "No command of ours puts a tab to sleep.",
    run: async (stage) => {
      const guarded = await stage.sleep(await stage.openGuarded("g"));
      const before = await stage.view();
      return [before, await stage.ended(stage.browser.tabs.remove([guarded])), await stage.view()];
    },
    expected: [{ home: ["home active", "g/guard asleep"] }, "done", { home: ["home active"] }],
  },
  {
    id: "ask-pinned",
    title: "Closing a pinned tab whose page asks",
    source: "tried here",
    chromium: "Asks; a pin protects nothing by itself.",
    ours: "BLOCKED_BY_PAGE, as any other.",
    run: async (stage) => {
      const [guarded, p] = [await stage.openGuarded("g"), await stage.open("p")];
      await stage.browser.tabs.update(guarded, { pinned: true });
      await stage.browser.tabs.update(p, { pinned: true });
      return [await stage.ended(stage.browser.tabs.remove([guarded, p])), await stage.view()];
    },
    expected: ["pending", { home: ["g/guard active pinned", "home"] }],
  },
  {
    id: "ask-window",
    title: "A person closes a window in which one page asks",
    source: "tried here",
    chromium: "Closes none of its tabs until the page has its answer, and then all.",
    ours: "Nothing is told before it is so.",
    run: async (stage) => {
      const windowId = await stage.windowOf(await stage.openWindow("a"));
      await stage.openGuarded("g", { in: windowId });
      await stage.world.closeWindow(windowId);
      await stage.world.asked();
      const before = await stage.view();
      await stage.world.answer("leave");
      return [before, await stage.view()];
    },
    expected: [{ home: ["home active"], w2: ["a", "g/guard active"] }, { home: ["home active"] }],
  },
  {
    id: "ask-move-window",
    title: "Moving a page that would ask to another window",
    source: "tried here",
    chromium: "Moves it without a question; what was typed stays.",
    ours: "OK.",
    run: async (stage) => {
      const guarded = await stage.openGuarded("g");
      const windowId = await stage.windowOf(await stage.openWindow("w"));
      await stage.browser.tabs.move(guarded, { windowId, index: -1 });
      const moved = await stage.view();
      return [moved, await stage.ended(stage.browser.tabs.remove([guarded]))];
    },
    expected: [{ home: ["home active"], w2: ["w active", "g/guard"] }, "pending"],
  },
  {
    id: "ask-alert",
    title: "Closing a tab whose page shows a message that nobody has answered",
    source: "tried here",
    chromium: "Closes it at once; a message is no question before leaving.",
    ours: "OK.",
    run: async (stage) => {
      const a = await stage.open("a/alert");
      await stage.world.click(a);
      await stage.patience();
      return [await stage.endedSoon(stage.browser.tabs.remove([a])), await stage.view()];
    },
    expected: ["done", { home: ["home active"] }],
  },
];
