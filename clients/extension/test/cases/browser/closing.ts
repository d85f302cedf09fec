/** What the browser does when tabs are closed. */
import type { BrowserCase } from "../case.js";

/** An id that no tab has. */
const unknown = 2_147_483_000;

export const closing: readonly BrowserCase[] = [
  {
    id: "close-order",
    title: "Closing several tabs, one of which is gone",
    source: "1",
    chromium: "Closes those before the one that is gone, refuses, and leaves those after it.",
    ours: "The port names the id that is missing; closeTabs goes on behind it.",
    run: async (stage) => {
      const [a, b] = [await stage.open("a"), await stage.open("b")];
      return [await stage.ended(stage.browser.tabs.remove([a, unknown, b])), await stage.view()];
    },
    expected: ["noTab", { home: ["home active", "b"] }],
  },
  {
    id: "close-guarded",
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
];
