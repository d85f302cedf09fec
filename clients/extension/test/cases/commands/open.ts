/** Cases of openTab, navigateTab and getActiveTab. */
import type { CommandCase } from "../case.js";

export const openCases: readonly CommandCase[] = [
  {
    id: "open-behind",
    title: "openTab without showing the tab",
    source: "7",
    chromium: "Creates the tab behind the others; the focus and the tab in front stay.",
    ours: "The id and the address of the new tab.",
    run: async (stage) => [
      await stage.command({ case: "openTab", value: { url: "http://a.test/x", active: false } }),
      await stage.view(),
    ],
    expected: [{ tabId: "a/x", url: "http://a.test/x" }, { home: ["home active", "a/x"] }],
  },
];
