/** The panel and the settings for those who do not see them, or see them otherwise. Names and roles are Chromium's own. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Fixture, soon } from "./harness/fixture.js";
import { Model } from "./harness/model.js";
import { askFirst, focused, giveToken, openPanel } from "./harness/panel.js";

let model: Model;
let f: Fixture;
let panel: Page;

beforeAll(async () => {
  model = await Model.start();
  await model.script({
    match: "close",
    replies: [
      { text: "Let me look, **now**: `code` and https://example.com/", calls: [{ name: "listTabs", arguments: "{}" }] },
      { calls: [{ name: "navigateTab", arguments: '{"tabId":"nothing","url":"https://example.com"}' }] },
      { calls: [{ name: "closeTabs", arguments: '{"tabIds":["{{listTabs.tabId[0]}}"]}' }] },
      { text: "It stays open." },
    ],
  });
  f = await Fixture.start("work laptop", model.env);
  await giveToken(f);
  await askFirst(f, "closeTabs");
  await f.browser.openTab("http://mail.test/");
  panel = await openPanel(f);
  await panel.fill("#message", "close the first");
  await panel.press("#message", "Enter");
  await panel.waitForSelector(".approval .edit");
  for (const details of await panel.locator("#lines details").all()) {
    await details.evaluate((each: HTMLDetailsElement) => {
      each.open = true;
    });
  }
});

afterAll(async () => {
  await f?.stop();
  await model?.stop();
});

interface Node {
  readonly role: string;
  readonly name: string;
}

/** What assistive technology is told. */
async function tree(page: Page): Promise<Node[]> {
  const session = await f.browser.cdp(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  await session.detach();
  return nodes
    .filter(({ ignored }) => !ignored)
    .map(({ role, name }) => ({ role: String(role?.value ?? ""), name: String(name?.value ?? "").trim() }));
}

const controls = new Set([
  "button",
  "checkbox",
  "combobox",
  "link",
  "radio",
  "searchbox",
  "switch",
  "textbox",
  "dialog",
  "log",
  "DisclosureTriangle",
]);

async function nameless(page: Page): Promise<Node[]> {
  return (await tree(page)).filter(({ role, name }) => controls.has(role) && name === "");
}

test("every control has a name and every region is one: the panel, its sheets, an edit, the settings", async () => {
  // What is in a line is drawn once it was unfolded.
  const roles = async () => (await tree(panel)).map(({ role }) => role);
  await expect
    .poll(roles, soon)
    .toEqual(expect.arrayContaining(["banner", "main", "form", "log", "status", "alert", "timer", "table"]));
  expect(await nameless(panel)).toEqual([]);
  await panel.click(".approval .edit");
  await panel.waitForSelector(".approval .items");
  expect(await nameless(panel)).toEqual([]);
  await panel.click(".approval .edit");
  for (const sheet of ["#conversations", "#waiting", "#state"]) {
    await panel.click(sheet);
    await panel.waitForSelector(".sheet");
    const found = await tree(panel);
    expect(found.some(({ role, name }) => role === "dialog" && name !== "")).toBe(true);
    expect(await nameless(panel)).toEqual([]);
    await panel.keyboard.press("Escape");
    await panel.waitForSelector(".sheet", { state: "detached" });
    await expect.poll(() => focused(panel), soon).toBe(sheet.slice(1));
  }
  expect(await nameless(f.page)).toEqual([]);
  const headings = await f.page.$$eval("h1, h2", (all) => all.map(({ tagName }) => tagName));
  expect(headings[0]).toBe("H1");
});

test("the tab key goes from the head through the conversation to the field, and misses nothing that can be used", async () => {
  // The browser goes on from where the focus was last: it has to be said where the page begins.
  await panel.focus(".skip");
  const usable = await panel.$$eval(
    "button, input, textarea, select, a[href], summary",
    (all) => all.filter((each) => each.checkVisibility() && !each.matches(":disabled")).length,
  );
  const where = () =>
    panel.evaluate(() => {
      const { activeElement } = document;
      const region = activeElement?.closest("header.head, #lines, form.compose, .skip");
      return `${region?.id || region?.className.split(" ")[0] || ""} ${activeElement?.matches("button, input, textarea, select, a[href], summary") ? "control" : ""}`;
    });
  const order = [await where()];
  for (let at = 0; at < usable + 10; at++) {
    await panel.keyboard.press("Tab");
    const now = await where();
    if (now === "skip control") {
      break;
    }
    order.push(now);
  }
  const regions = order.map((each) => each.split(" ")[0] ?? "");
  expect(regions.filter((each, at) => each !== regions[at - 1] && each !== "")).toEqual([
    "skip",
    "head",
    "lines",
    "compose",
  ]);
  // Of the radio buttons of a group one is stopped at.
  const grouped = await panel.$$eval("input[type=radio]", (all) => all.filter((each) => each.checkVisibility()).length);
  const reached = order.filter((each) => each.endsWith("control") && !each.startsWith(" ")).length;
  expect(reached).toBe(usable - Math.max(0, grouped - 1));
  await panel.focus("#message");
});

/** Text whose contrast with what is behind it is too low, as it is drawn. */
function tooFaint(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour: string): [number, number, number, number] => {
      if (canvas === null) {
        return [0, 0, 0, 1];
      }
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r = 0, g = 0, b = 0, a = 0] = canvas.getImageData(0, 0, 1, 1).data;
      return [r, g, b, a / 255];
    };
    const luminance = (parts: readonly number[]) => {
      const [r = 0, g = 0, b = 0] = parts.map((part) => {
        const share = part / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element: Element | null): readonly number[] => {
      for (let at = element; at !== null; at = at.parentElement) {
        const [r, g, b, a] = rgba(getComputedStyle(at).backgroundColor);
        if (a === 1) {
          return [r, g, b];
        }
      }
      return [255, 255, 255];
    };
    const faint: string[] = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let seen = 0;
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const element = node.parentElement;
      const text = node.textContent?.trim() ?? "";
      if (
        element === null ||
        text === "" ||
        !element.checkVisibility() ||
        element.closest(":disabled, .spoken, .working, script, style")
      ) {
        continue;
      }
      seen++;
      const ink = luminance(rgba(getComputedStyle(element).color).slice(0, 3));
      const ground = luminance(behind(element));
      const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
      if (ratio < 4.5) {
        faint.push(`${ratio.toFixed(2)} ${text.slice(0, 40)}`);
      }
    }
    return seen > 10 ? faint : ["there is hardly any text"];
  });
}

test("all text that is drawn has a contrast of 4.5 to 1, in both schemes", async () => {
  for (const scheme of ["light", "dark"] as const) {
    for (const page of [panel, f.page]) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await expect.poll(() => tooFaint(page), soon).toEqual([]);
    }
  }
  for (const sheet of ["#conversations", "#waiting", "#state"]) {
    await panel.click(sheet);
    await panel.waitForSelector(".sheet");
    await expect.poll(() => tooFaint(panel), soon).toEqual([]);
    await panel.click(sheet);
    await panel.waitForSelector(".sheet", { state: "detached" });
  }
  await panel.emulateMedia({ colorScheme: "light" });
});

test("nothing moves for whoever does not want that, and nothing is lost without colours", async () => {
  await panel.emulateMedia({ reducedMotion: "reduce" });
  const moving = () => panel.evaluate(() => document.getAnimations().length);
  await expect.poll(moving, soon).toBe(0);
  await panel.emulateMedia({ forcedColors: "active" });
  // States are words and shapes; the frame of what waits is drawn with the system's own colour.
  const states = async () =>
    (await panel.locator("details.tool .what").allTextContents()).map((each) => each.replace(/^.* · /, ""));
  await expect
    .poll(states, soon)
    .toEqual([expect.stringMatching(/: done$/), expect.stringMatching(/^failed/), "waits for you"]);
  const shapes = await panel.$$eval("details.tool > summary > .glyph path", (all) =>
    all.map((each) => each.getAttribute("d")),
  );
  expect(new Set(shapes).size).toBe(3);
  await panel.emulateMedia({ forcedColors: "none" });
});

test("what happens is said by regions that are there from the start, and the focus stays where the person is", async () => {
  expect(await panel.getAttribute("#news", "aria-live")).toBe("polite");
  expect(await panel.getAttribute("#urgent", "aria-live")).toBe("assertive");
  expect(await panel.getAttribute("#lines", "aria-live")).toBe("off");
  expect(await panel.textContent("#news")).toContain("Let me look");
  expect(await panel.textContent("#urgent")).toContain("waits for your approval");
  await panel.fill("#message", "");
  await panel.keyboard.type("typing on");
  await f.server.cli("approvals", "deny", (await panel.getAttribute(".approval", "data-id")) ?? "", "--reason", "no");
  await expect.poll(() => panel.locator(".approval").textContent(), soon).toContain("Denied. Nothing ran");
  expect(await focused(panel)).toBe("message");
  expect(await panel.inputValue("#message")).toBe("typing on");
});
