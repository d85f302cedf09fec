/** Cases of openTab and navigateTab with addresses of every kind, of getActiveTab, and of openTab that is stopped or repeated. */
import type { CommandCase } from "../case.js";
import type { CommandStage } from "../stage.js";
import { does } from "./brief.js";

interface RefusedKind {
  readonly id: string;
  readonly kind: string;
  readonly source: string;
  readonly chromium: string;
  readonly urls: readonly string[];
}

/** What openTab and navigateTab do not hand to the browser. */
const refusedKinds: readonly RefusedKind[] = [
  {
    id: "script",
    kind: "javascript: addresses",
    source: "8",
    chromium: "Refuses them.",
    urls: ["javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)"],
  },
  {
    id: "inner",
    kind: "addresses of the browser's inner parts",
    source: "8",
    chromium: "Opens some, refuses some, and would end itself for chrome://kill if it did not refuse that.",
    urls: [
      "chrome://version",
      "chrome://kill",
      "chrome-untrusted://x",
      "devtools://x",
      "about:blank",
      "chrome-extension://x/y",
    ],
  },
  {
    id: "local",
    kind: "file:, data:, blob: and view-source: addresses",
    source: "8",
    chromium: "Opens them.",
    urls: ["file:///etc/hostname", "data:text/html,x", "blob:http://a.test/x", "view-source:http://a.test/"],
  },
  {
    id: "programs",
    kind: "addresses for other programs",
    source: "8",
    chromium: "Leaves an empty tab, or the tab as it was, and says nothing.",
    urls: ["ftp://a.test/", "mailto:x@y.test", "tel:123", "foo:bar", "ws://a.test/"],
  },
  {
    id: "words",
    kind: "words without a scheme or a dot",
    source: "8",
    chromium: "Opens a page of the extension itself under that name.",
    urls: ["example", "not a url", "/x", "//a.test/", "?q=x"],
  },
  {
    id: "broken",
    kind: "addresses that are none",
    source: "8",
    chromium: "Refuses them.",
    urls: ["http://", "https://", "http://[::1", "http://a.test:99999/", "http://.../"],
  },
  {
    id: "credentials",
    kind: "addresses with a user name or a password",
    source: "10",
    chromium: "Opens them and shows both in the tab's address.",
    urls: ["http://me:pw@a.test/", "http://me@a.test/", "me:pw@a.test", "http://@a.test/"],
  },
  {
    id: "odd",
    kind: "addresses that the browser would read in another way than they look",
    source: "tried here",
    chromium:
      "Drops tabs and line ends, takes a backslash for a slash, and mends slashes that are missing or too many.",
    urls: ["http://a.test\\@b.test/", "http://a.te\nst/", "http:a.test", "http:///a.test"],
  },
];

async function refusals(stage: CommandStage, urls: readonly string[]): Promise<unknown> {
  const tabId = stage.tabId(await stage.open("t"));
  const answers = new Set<unknown>();
  for (const url of urls) {
    answers.add(await stage.command({ case: "openTab", value: { url } }));
    answers.add(await stage.command({ case: "navigateTab", value: { tabId, url } }));
  }
  return [[...answers], await stage.view()];
}

const refused: readonly CommandCase[] = refusedKinds.map(({ id, kind, source, chromium, urls }) => ({
  id: `open-kind-${id}`,
  title: `openTab and navigateTab of ${kind}`,
  source,
  chromium,
  ours: "REFUSED before anything is opened or left.",
  run: (stage) => refusals(stage, urls),
  expected: [["REFUSED"], { home: ["home active", "t"] }],
}));

/** Opens an address behind, and says what the command answered and what there is then. */
async function opened(stage: CommandStage, url: string): Promise<unknown> {
  return [await does(stage, { case: "openTab", value: { url, active: false } }), await stage.tabNames()];
}

/** The same where the browser has to have said for a failure, within a moment, that no page comes: on a busy machine it may be late. */
async function openedInTime(stage: CommandStage, url: string): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    const answer = await does(stage, { case: "openTab", value: { url, active: false } });
    if (answer === "FAILED" || tries === 5) {
      return [answer, await stage.tabNames()];
    }
    await stage.view();
    const empty = (await stage.browser.tabs.list()).filter((tab) => (tab.pendingUrl || tab.url) === "");
    await stage.browser.tabs.remove(empty.map(({ id }) => id));
  }
}

const addressCases: readonly CommandCase[] = [
  {
    id: "open-behind",
    title: "openTab without showing the tab",
    source: "7",
    chromium: "Creates the tab behind the others; the focus and the tab in front stay.",
    ours: "The id and the address of the new tab.",
    run: async (stage) => [
      await does(stage, { case: "openTab", value: { url: "http://a.test/x", active: false } }),
      await stage.view(),
    ],
    expected: [{ tabId: "a/x", url: "http://a.test/x" }, { home: ["home active", "a/x"] }],
  },
  {
    id: "open-mended",
    title: "openTab of an address in capital letters and with blanks around",
    source: "tried here",
    chromium: "Mends both.",
    ours: "The same, and the result has the address as it was opened.",
    run: (stage) => opened(stage, "  HTTP://A.TEST/X "),
    expected: [{ tabId: "a/X", url: "http://a.test/X" }, ["home", "a/X"]],
  },
  {
    id: "open-idn",
    title: "openTab of an address in another script",
    source: "10",
    chromium: "Says the host in punycode and the path percent-encoded.",
    ours: "The result has the same form, so it can be compared with the list.",
    run: (stage) => opened(stage, "http://пример.test/путь"),
    expected: [
      {
        tabId: "xn--e1afmkfd/%D0%BF%D1%83%D1%82%D1%8C",
        url: "http://xn--e1afmkfd.test/%D0%BF%D1%83%D1%82%D1%8C",
      },
      ["home", "xn--e1afmkfd/%D0%BF%D1%83%D1%82%D1%8C"],
    ],
  },
  {
    id: "open-percent",
    title: "openTab of an address with percent signs that encode nothing",
    source: "10",
    chromium: "Keeps them as they are.",
    ours: "Nothing decodes it, so nothing throws.",
    run: (stage) => opened(stage, "http://a.test/%zz%"),
    expected: [{ tabId: "a/%zz%", url: "http://a.test/%zz%" }, ["home", "a/%zz%"]],
  },
  {
    id: "close-by-url-idn",
    title: "closeTabsByUrl of addresses in another script, and with percent signs",
    source: "10",
    chromium: "Has them in its own form only.",
    ours: "Both sides are written in one form before they are compared; nothing throws.",
    run: async (stage) => {
      for (const url of ["http://пример.test/путь", "http://a.test/%zz%"]) {
        await stage.command({ case: "openTab", value: { url, active: false } });
      }
      const close = async (url: string) => {
        const answer = (await stage.command({ case: "closeTabsByUrl", value: { url } })) as { closedCount: number };
        return answer.closedCount;
      };
      return [
        await close("http://ПРИМЕР.test/путь"),
        await close("%zz"),
        await close("http://a.test/%zz%"),
        await stage.view(),
      ];
    },
    expected: [1, 0, 1, { home: ["home active"] }],
  },
  {
    id: "open-redirect",
    title: "openTab of an address that leads to another one",
    source: "tried here",
    chromium: "Arrives at the other one.",
    ours: "The result has the address that was opened; the list, the one that is shown.",
    run: (stage) => opened(stage, "http://a.test/redirects"),
    expected: [{ tabId: "a/target", url: "http://a.test/redirects" }, ["home", "a/target"]],
  },
  {
    id: "open-nothing",
    title: "openTab of an address whose server answers with nothing (204)",
    source: "tried here",
    chromium: "Leaves a blank tab and says nothing.",
    ours: "FAILED, as the tab is watched for a moment; the empty one is closed again.",
    run: (stage) => openedInTime(stage, "http://a.test/nothing"),
    expected: ["FAILED", ["home"]],
  },
  {
    id: "open-unreachable",
    title: "openTab of an address that cannot be reached",
    source: "tried here",
    chromium: "Shows an error of its own under that address, and for a moment before that a tab without one.",
    ours: "The tab is open, and is not taken for an empty one; whether its page came is not what openTab says.",
    run: (stage) => opened(stage, "https://a.test/"),
    expected: [{ tabId: "https://a.test/", url: "https://a.test/" }, ["home", "https://a.test/"]],
  },
  {
    id: "open-many",
    title: "20 openTab at the same time",
    source: "14",
    chromium: "Opens them all, in any order.",
    ours: "20 results with 20 ids, each of them of a tab that is there.",
    run: async (stage) => {
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          stage.deliver({ case: "openTab", value: { url: `http://f${n}.test/`, active: false } }),
        ),
      );
      const told = (await Promise.all(outcomes.map((each) => stage.told(each)))) as { tabId: string }[];
      const names = await stage.tabNames();
      return [told.every(({ tabId }, n) => tabId === `f${n}`), new Set(names).size];
    },
    expected: [true, 21],
  },
  {
    id: "navigate-nothing",
    title: "navigateTab to an address whose server answers with nothing (204), or with a file",
    source: "tried here",
    chromium: "Leaves the page that is shown, and says nothing.",
    ours: "FAILED with what the tab still shows.",
    run: async (stage) => {
      const a = await stage.open("a");
      const to = (url: string) => does(stage, { case: "navigateTab", value: { tabId: stage.tabId(a), url } });
      return [await to("http://b.test/nothing"), await to("http://b.test/file"), await stage.tabNames()];
    },
    expected: ["FAILED", "FAILED", ["home", "a"]],
  },
  {
    id: "navigate-fragment",
    title: "navigateTab to another part of the same page",
    source: "tried here",
    chromium: "Loads nothing, and has the new address.",
    ours: "The address.",
    run: async (stage) => {
      const tabId = stage.tabId(await stage.open("a"));
      return [
        await does(stage, { case: "navigateTab", value: { tabId, url: "http://a.test/#x" } }),
        await stage.tabNames(),
      ];
    },
    expected: [{ url: "http://a.test/#x" }, ["home", "a/#x"]],
  },
];

async function activeTab(stage: CommandStage): Promise<unknown> {
  const answer = await stage.command({ case: "getActiveTab", value: {} });
  const { tabId, url } = answer as { readonly tabId?: string; readonly url: string };
  return [tabId, url];
}

const activeCases: readonly CommandCase[] = [
  {
    id: "active-asleep",
    title: "getActiveTab of a tab that is asleep",
    source: "17",
    chromium: "Can put even the tab in front to sleep.",
    ours: "Its new id and its address; it is not woken.",
    run: async (stage) => {
      const a = await stage.open("a");
      await stage.browser.tabs.update(a, { active: true });
      await stage.sleep(a);
      return [await activeTab(stage), await stage.view()];
    },
    expected: [["a", "http://a.test/"], { home: ["home", "a active asleep"] }],
  },
  {
    id: "active-loading",
    title: "getActiveTab of a tab whose page has not come yet",
    source: "14",
    chromium: "Has an address that is pending only.",
    ours: "The pending address.",
    run: async (stage) => {
      await stage.browser.tabs.create({ url: "http://a.test/silent", active: true });
      await stage.patience();
      const answer = await stage.deliver({ case: "getActiveTab", value: {} });
      const value = answer.outcome.case === "result" ? answer.outcome.value.kind.value : undefined;
      return value !== undefined && "url" in value ? value.url : answer.outcome;
    },
    expected: "http://a.test/silent",
  },
  {
    id: "active-popup",
    title: "getActiveTab while a popup window has the focus",
    source: "6",
    chromium: "Calls the popup window the one that had the focus last.",
    ours: "The tab of the popup window: that is what the person looks at.",
    run: async (stage) => {
      await stage.browser.windows.focus(await stage.windowOf(await stage.openWindow("p", "popup")));
      return activeTab(stage);
    },
    expected: ["p", "http://p.test/"],
  },
];

const idCases: readonly CommandCase[] = [
  {
    id: "ids-wrong-kind",
    title: "Ids of windows where ids of tabs belong, and texts that are none",
    source: "tried here",
    chromium: "Has plain numbers: a window's could be taken for a tab's.",
    ours: "INVALID, and nothing is done to any tab of the command.",
    run: async (stage) => {
      const a = await stage.open("a");
      const windowId = stage.windowId(await stage.home());
      const answers: unknown[] = [];
      for (const wrong of [windowId, "x", String(a)]) {
        answers.push(await stage.command({ case: "closeTabs", value: { tabIds: [stage.tabId(a), wrong] } }));
      }
      answers.push(
        await stage.command({ case: "openTab", value: { url: "http://b.test/", windowId: stage.tabId(a) } }),
      );
      return [answers, await stage.view()];
    },
    expected: [["INVALID", "INVALID", "INVALID", "INVALID"], { home: ["home active", "a"] }],
  },
  {
    id: "ids-earlier-start",
    title: "Ids of an earlier start of the browser",
    source: "tried here",
    chromium: "Numbers tabs anew at each start, from a random number on; a number may come again.",
    ours: "NOT_FOUND: the id carries the start that it is of.",
    run: async (stage) => {
      const a = await stage.open("a");
      return [
        await does(stage, { case: "navigateTab", value: { tabId: stage.staleId(a), url: "http://b.test/" } }),
        await does(stage, { case: "muteTabs", value: { tabIds: [stage.staleId(a)], muted: true } }),
        await stage.view(),
      ];
    },
    expected: ["NOT_FOUND", { mutedCount: 0, items: ["a NOT_FOUND"] }, { home: ["home active", "a"] }],
  },
];

const repeatCases: readonly CommandCase[] = [
  {
    id: "open-redelivered",
    title: "openTab that is delivered twice, at once and later",
    source: "11",
    chromium: "Would open a tab each time.",
    ours: "One tab; all three get the same result.",
    run: async (stage) => {
      const kind = { case: "openTab", value: { url: "http://a.test/", active: false } } as const;
      const once = () => does(stage, kind, { id: "open-redelivered" });
      const both = await Promise.all([once(), once()]);
      return [...both, await once(), await stage.view()];
    },
    expected: [
      { tabId: "a", url: "http://a.test/" },
      { tabId: "a", url: "http://a.test/" },
      { tabId: "a", url: "http://a.test/" },
      { home: ["home active", "a"] },
    ],
  },
  {
    id: "open-stopped-after",
    title: "The worker is stopped after a tab was opened and before that is told",
    source: "11",
    chromium: "Keeps the tab and starts another worker.",
    ours: "The next worker finds the tab and answers with it; a repeat gets the same.",
    run: async (stage) => {
      const kind = { case: "openTab", value: { url: "http://a.test/", active: false } } as const;
      await stage.world.hang("create", "after");
      const opening = does(stage, kind, { id: "open-stopped-after" });
      await stage.world.hanging();
      await stage.world.stopWorker();
      return [await opening, await does(stage, kind, { id: "open-stopped-after" }), await stage.view()];
    },
    expected: [
      { tabId: "a", url: "http://a.test/" },
      { tabId: "a", url: "http://a.test/" },
      { home: ["home active", "a"] },
    ],
  },
  {
    id: "open-stopped-before",
    title: "The worker is stopped before a tab was opened, but after that was written down",
    source: "11",
    chromium: "Starts another worker.",
    ours: "INTERRUPTED: the next worker looks for the tab and never opens one itself.",
    run: async (stage) => {
      const kind = { case: "openTab", value: { url: "http://a.test/", active: false } } as const;
      await stage.world.hang("create", "before");
      const opening = does(stage, kind);
      await stage.world.hanging();
      await stage.world.stopWorker();
      return [await opening, await stage.view()];
    },
    expected: ["INTERRUPTED", { home: ["home active"] }],
  },
];

export const openCases: readonly CommandCase[] = [
  ...addressCases,
  ...refused,
  ...activeCases,
  ...idCases,
  ...repeatCases,
];
