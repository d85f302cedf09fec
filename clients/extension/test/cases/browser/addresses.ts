/** What the browser makes of addresses of every kind. */
import { BrowserError } from "../../../src/platform/port.js";
import type { BrowserCase } from "../case.js";
import { homeUrl, shortened } from "../names.js";
import type { Stage } from "../stage.js";

/** How an address fared: how it was refused, or what was pending at once and what is shown in the end. */
async function created(stage: Stage, url: string): Promise<unknown> {
  const { tabs } = stage.browser;
  try {
    const { id, pendingUrl } = await tabs.create({ url, active: false });
    await stage.view();
    const now = await tabs.get(id);
    return [pendingUrl, now?.url ?? "gone"].map(shortened);
  } catch (error) {
    return error instanceof BrowserError ? error.kind : Promise.reject(error);
  }
}

async function navigated(stage: Stage, url: string): Promise<unknown> {
  const { tabs } = stage.browser;
  const id = await stage.open("a");
  try {
    const { pendingUrl } = await tabs.update(id, { url });
    await stage.view();
    return [pendingUrl, (await tabs.get(id))?.url ?? "gone"].map(shortened);
  } catch (error) {
    return error instanceof BrowserError ? error.kind : Promise.reject(error);
  }
}

function each(stage: Stage, how: typeof created, urls: readonly string[]): Promise<unknown[]> {
  return urls.reduce<Promise<unknown[]>>(
    async (done, url) => [...(await done), await how(stage, url)],
    Promise.resolve([]),
  );
}

const own = homeUrl.replace("options.html", "");
const long = (scheme: string, length: number) => scheme + "x".repeat(length);
const refusedByUs = "REFUSED by openTab and navigateTab before the browser is asked; REFUSED_URL for a saved tab.";

export const addresses: readonly BrowserCase[] = [
  {
    id: "url-script",
    title: "javascript: addresses",
    source: "8",
    chromium: "Refuses them, in new tabs and old ones.",
    ours: refusedByUs,
    run: async (stage) => [await created(stage, "javascript:alert(1)"), await navigated(stage, "JavaScript:alert(1)")],
    expected: ["refusedUrl", "refusedUrl"],
  },
  {
    id: "url-inner",
    title: "Addresses of the browser's inner parts, or that would end it",
    source: "8",
    chromium: "Refuses chrome-untrusted:, devtools:, chrome://kill, chrome://crash and isolated-app:.",
    ours: refusedByUs,
    run: (stage) =>
      each(stage, created, [
        "chrome-untrusted://x",
        "devtools://devtools/bundled/inspector.html",
        "chrome://kill",
        "chrome://crash",
        "isolated-app://x",
      ]),
    expected: ["refusedUrl", "refusedUrl", "refusedUrl", "refusedUrl", "refusedUrl"],
  },
  {
    id: "url-inner-navigate",
    title: "Sending a tab to such an address",
    source: "tried here",
    chromium: "Refuses in the same words, and the tab stays where it is.",
    ours: refusedByUs,
    run: async (stage) => [
      await navigated(stage, "chrome://kill"),
      await navigated(stage, "devtools://devtools/bundled/inspector.html"),
      await stage.tabNames(),
    ],
    expected: ["refusedUrl", "refusedUrl", ["home", "a", "a"]],
  },
  {
    id: "url-local",
    title: "chrome:, file:, data:, view-source: and about: addresses",
    source: "8",
    chromium: "Opens them.",
    ours: refusedByUs,
    run: (stage) =>
      each(stage, created, [
        "chrome://version/",
        "file:///etc/hostname",
        "data:text/html,x",
        "view-source:http://a.test/",
        "about:blank",
      ]),
    expected: [
      ["chrome://version/", "chrome://version/"],
      ["file:///etc/hostname", "file:///etc/hostname"],
      ["data:text/html,x", "data:text/html,x"],
      ["view-source:http://a.test/", "view-source:http://a.test/"],
      ["about:blank", "about:blank"],
    ],
  },
  {
    id: "url-no-scheme",
    title: "Addresses without a scheme",
    source: "8",
    chromium: "Takes them for pages of the extension itself: an error page under the extension's own origin.",
    ours: "A bare domain gets https; anything else is REFUSED.",
    run: (stage) => each(stage, created, ["example", "not a url", "example.com", "/x", ""]),
    expected: ["example", "not%20a%20url", "example.com", "x", ""].map((path) =>
      [own + path, own + path].map(shortened),
    ),
  },
  {
    id: "url-broken",
    title: "Addresses that are none",
    source: "8",
    chromium: "Refuses an empty host, a port out of range, half an IPv6 host, and two slashes without a scheme.",
    ours: refusedByUs,
    run: (stage) => each(stage, created, ["http://", "http://a.test:99999/", "http://[::1", "//a.test/"]),
    expected: ["refusedUrl", "refusedUrl", "refusedUrl", "refusedUrl"],
  },
  {
    id: "url-programs",
    title: "Addresses for other programs",
    source: "8",
    chromium: "Leaves an empty tab for ftp:, mailto: and schemes that nobody knows, and says nothing.",
    ours: refusedByUs,
    run: (stage) => each(stage, created, ["ftp://a.test/", "mailto:x@y.test", "foo:bar", "content://x"]),
    expected: [
      ["ftp://a.test/", ""],
      ["mailto:x@y.test", ""],
      ["foo:bar", ""],
      ["content://x", ""],
    ],
  },
  {
    id: "url-programs-navigate",
    title: "Sending a tab to an address for another program",
    source: "tried here",
    chromium: "Leaves the tab where it is, and says nothing.",
    ours: refusedByUs,
    run: (stage) => each(stage, navigated, ["ftp://a.test/", "mailto:x@y.test"]),
    expected: [
      ["ftp://a.test/", "http://a.test/"],
      ["mailto:x@y.test", "http://a.test/"],
    ],
  },
  {
    id: "url-phone",
    title: "tel: addresses",
    source: "tried here",
    chromium: "Takes tel:123 for the host tel and the port 123, and opens http://tel:123/.",
    ours: "REFUSED: a host without a dot is no domain.",
    run: (stage) => created(stage, "tel:123"),
    expected: ["http://tel:123/", "http://tel:123/"],
  },
  {
    id: "url-long",
    title: "An address of nearly 2 MiB",
    source: "8",
    chromium: "Opens it.",
    ours: "openTab takes 8,192 bytes; the state carries 64 KiB of an address.",
    run: async (stage) => {
      const url = long("http://a.test/#", 2_097_100);
      const { id, pendingUrl } = await stage.browser.tabs.create({ url, active: false });
      await stage.browser.tabs.remove([id]);
      return pendingUrl.length;
    },
    expected: "http://a.test/#".length + 2_097_100,
  },
  {
    id: "url-too-long",
    title: "An address of more than 2 MiB in a new tab",
    source: "8",
    chromium: "Opens an empty tab without an address and says nothing, for http: and data: alike.",
    ours: "openTab takes 8,192 bytes; a tab that came up empty is never called OK.",
    run: (stage) => each(stage, created, [long("http://a.test/#", 2_200_000), long("data:text/html,", 2_200_000)]),
    expected: [
      ["", ""],
      ["", ""],
    ],
  },
  {
    id: "url-too-long-navigate",
    title: "Sending a tab to an address of more than 2 MiB",
    source: "tried here",
    chromium: "Refuses: Navigation rejected.",
    ours: refusedByUs,
    run: (stage) => navigated(stage, long("http://a.test/#", 2_200_000)),
    expected: "refusedUrl",
  },
  {
    id: "url-idn",
    title: "Addresses in other scripts",
    source: "10",
    chromium: "Says the host in punycode and the path percent-encoded, from the first moment on.",
    ours: "The address is kept as the browser says it; addresses are compared in that form.",
    run: (stage) => created(stage, "http://пример.test/путь"),
    expected: [
      "http://xn--e1afmkfd.test/%D0%BF%D1%83%D1%82%D1%8C",
      "http://xn--e1afmkfd.test/%D0%BF%D1%83%D1%82%D1%8C",
    ],
  },
  {
    id: "url-percent",
    title: "Addresses with percent signs that encode nothing",
    source: "10",
    chromium: "Keeps them as they are.",
    ours: "Nothing of ours decodes an address, so nothing throws.",
    run: (stage) => created(stage, "http://a.test/%zz%"),
    expected: ["http://a.test/%zz%", "http://a.test/%zz%"],
  },
  {
    id: "url-encoded",
    title: "Addresses with spaces, umlauts and brackets",
    source: "10",
    chromium: "Encodes them.",
    ours: "The address is kept as the browser says it.",
    run: (stage) => each(stage, created, ["http://a.test/ä ö?q=ü", 'http://a.test/<>"`{}']),
    expected: [
      ["http://a.test/%C3%A4%20%C3%B6?q=%C3%BC", "http://a.test/%C3%A4%20%C3%B6?q=%C3%BC"],
      ["http://a.test/%3C%3E%22%60%7B%7D", "http://a.test/%3C%3E%22%60%7B%7D"],
    ],
  },
  {
    id: "url-credentials",
    title: "Addresses with a user name and a password",
    source: "10",
    chromium: "Opens them and shows both in the tab's address.",
    ours: "REFUSED by openTab and navigateTab; the server strips them from what it shows and logs.",
    run: (stage) => created(stage, "http://me:pw@a.test/"),
    expected: ["http://me:pw@a.test/", "http://me:pw@a.test/"],
  },
  {
    id: "url-rewritten",
    title: "Addresses that the browser reads more kindly than they are written",
    source: "tried here",
    chromium: "Mends case, blanks around, a missing or a third slash, a backslash, tabs and line ends.",
    ours: "Case and blanks are mended, the others REFUSED: what was checked has to be what is opened.",
    run: (stage) =>
      each(stage, created, [
        "HTTP://A.TEST/X",
        " http://a.test/ ",
        "http:a.test",
        "http:///a.test",
        "http://a.test\\x",
        "http://a.test/\tx\ny",
      ]),
    expected: ["X", "", "", "", "x", "xy"].map((path) => [`http://a.test/${path}`, `http://a.test/${path}`]),
  },
  {
    id: "url-window",
    title: "Opening a window with an address that is refused, or swallowed",
    source: "8",
    chromium: "Opens no window for the first, and an empty one for the second.",
    ours: refusedByUs,
    run: async (stage) => [
      await stage.ended(stage.browser.windows.create("javascript:alert(1)")),
      await stage.ended(stage.browser.windows.create("mailto:x@y.test")),
      await stage.tabNames(),
    ],
    expected: ["refusedUrl", "done", ["home", "blank"]],
  },
];
