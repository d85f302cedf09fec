/** The side panel as a person uses it: by keyboard, with a screen reader, narrow, dark, twice. The model is scripted. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { again, Fixture, soon } from "./harness/fixture.js";
import { Model } from "./harness/model.js";
import { askFirst, focused, giveToken, openPanel, panelSize, picture } from "./harness/panel.js";

let model: Model;
let f: Fixture;
let panel: Page;

const videos = [1, 2, 3].map((n) => `http://youtube.test/watch?v=${n}`);
const others = ["http://mail.test/", "http://wiki.test/"];
const question = "Close my YouTube tabs on my work laptop";
const answer = [
  "I closed **3 YouTube tabs** on your work laptop:",
  "",
  "- they can be brought back with `restoreTabs`",
  "- the others are still open, for example https://wiki.test/",
].join("\n");
const sentence = "This is one of many sentences about trains and their points. ";
const long = Array.from({ length: 60 }, (_, at) => `Paragraph ${at + 1}. ${sentence.repeat(2)}`).join("\n\n");

beforeAll(async () => {
  model = await Model.start();
  await model.script(
    {
      match: "YouTube",
      replies: [
        { text: "I look for them.", calls: [{ name: "searchTabs", arguments: '{"query":"youtube"}' }] },
        { calls: [{ name: "closeTabs", arguments: '{"tabIds":"{{searchTabs.tabId}}"}' }] },
        { text: answer, piece: 12, pace_millis: 5 },
      ],
    },
    { match: "long", replies: [{ text: long, piece: 40, pace_millis: 15 }] },
    { match: "slow", replies: [{ text: long, piece: 20, pace_millis: 100 }] },
  );
  f = await Fixture.start("work laptop", model.env);
  await giveToken(f);
  await askFirst(f, "closeTabs");
  panel = await openPanel(f);
});

afterAll(async () => {
  await f?.stop();
  await model?.stop();
});

const lastAnswer = () => panel.locator("#lines .agent").last();

async function say(text: string): Promise<void> {
  await panel.fill("#message", text);
  await panel.press("#message", "Enter");
  await expect.poll(() => panel.locator("#lines .person").last().textContent(), soon).toBe(text);
}

/** How many approvals the head shows. It hears of them beside the conversation, sooner or later than that. */
const waiting = (count: string, page = panel) => expect.poll(() => page.textContent("#waiting"), soon).toBe(count);

test("with the keyboard alone: write, send, read, approve, go to another conversation and back", async () => {
  await f.closeSites();
  await f.open(...videos, ...others);
  await panel.click("#new");
  await panel.reload(); // nothing has the focus
  await panel.waitForSelector("#message:enabled");
  await panel.bringToFront();
  await panel.keyboard.press("Tab");
  expect(await focused(panel)).toBe("Go to the message field");
  await panel.keyboard.press("Enter");
  expect(await focused(panel)).toBe("message");
  await panel.keyboard.type(question);
  await panel.keyboard.press("Enter");
  await panel.waitForSelector(".approval .approve");
  // Nothing has taken the focus from the field.
  expect(await focused(panel)).toBe("message");
  await waiting("1");
  await expect.poll(() => panel.textContent("#urgent"), soon).toContain("Close tabs waits for your approval");
  await picture(panel, "panel-approval");
  for (let steps = 0; (await focused(panel)) !== "Approve"; steps++) {
    expect(steps).toBeLessThan(25);
    await panel.keyboard.press("Shift+Tab");
  }
  await panel.keyboard.press("Enter");
  // The buttons go; whoever used them stays at the card.
  await expect.poll(() => focused(panel), soon).toBe("Approval: Close tabs");
  await expect.poll(() => panel.locator(".agent li").count(), soon).toBe(2);
  await panel.waitForSelector("#send");
  await waiting("0");
  await expect.poll(() => panel.locator(".approval").last().textContent(), soon).toContain("Approved by you");
  const open = (await f.realTabs()).map(({ url }) => url).filter((url) => url.includes(".test/"));
  expect(open.sort()).toEqual([...others].sort());
  await picture(panel, "panel-light");
  // A new conversation, then the list, the first one found by its words, and opened.
  await panel.focus("#new");
  await panel.keyboard.press("Enter");
  await expect.poll(() => focused(panel), soon).toBe("message");
  await expect.poll(() => panel.locator(".agent").count(), soon).toBe(0);
  await panel.keyboard.type("half a thought");
  await panel.focus("#conversations");
  await panel.keyboard.press("Enter");
  await panel.waitForSelector("#conversations-sheet .conversation");
  await expect.poll(() => focused(panel), soon).toBe("find-conversation");
  await panel.keyboard.press("Escape");
  await expect.poll(() => focused(panel), soon).toBe("conversations");
  await panel.keyboard.press("Enter");
  await expect.poll(() => focused(panel), soon).toBe("find-conversation");
  await panel.keyboard.type("youtube");
  await expect
    .poll(() => panel.locator(".conversation").allTextContents(), soon)
    .toSatisfy((all: string[]) => all.length > 0 && all.every((each) => each.includes("YouTube")));
  await panel.keyboard.press("ArrowDown");
  await panel.keyboard.press("Enter");
  await expect.poll(() => panel.locator(".agent li").count(), soon).toBe(2);
  await expect.poll(() => focused(panel), soon).toBe("message");
  // What was typed elsewhere waits there.
  await panel.click("#new");
  await expect.poll(() => panel.inputValue("#message"), soon).toBe("half a thought");
  await panel.fill("#message", "");
});

test("a tool call is one line in words, and unfolds to what became of each tab", async () => {
  await panel.click("#conversations");
  await panel.click(".conversation");
  const close = panel.locator('details.tool[data-name="closeTabs"]');
  await expect.poll(() => close.locator("summary").textContent(), soon).toMatch(/^Close tabs · work laptop · 3 closed/);
  const height = (await close.boundingBox())?.height ?? 0;
  expect(height).toBeLessThan(45);
  await close.locator("summary").click();
  const rows = async () => (await close.locator("tbody tr").allTextContents()).sort();
  await expect
    .poll(rows, soon)
    .toEqual(videos.map((url) => `YouTube ${new URL(url).pathname}${new URL(url).search}${url}done`).sort());
  expect(await close.locator("pre.told").textContent()).toContain('"closedCount": 3');
});

interface Boxes {
  readonly tops: number[];
  readonly scrolled: number;
}

/** Where the lines are, measured from the first. */
const boxes = (): Promise<Boxes> =>
  panel.evaluate(() => {
    const all = [...document.querySelectorAll("#lines .agent > *, #lines > *")];
    const first = all[0]?.getBoundingClientRect().top ?? 0;
    return {
      tops: all.map((each) => Math.round((each.getBoundingClientRect().top - first) * 10) / 10),
      scrolled: document.querySelector("#lines")?.scrollTop ?? 0,
    };
  });

test("while text streams nothing above it moves, the end is followed, and a reader who has left it is left alone", async () => {
  await panel.click("#new");
  await say("tell me something long");
  await expect.poll(() => panel.locator(".agent > p").count(), soon).toBeGreaterThan(14);
  const fixed = () =>
    panel.evaluate(() =>
      ["header", ".compose", "#lines"].map((each) =>
        JSON.stringify(document.querySelector(each)?.getBoundingClientRect()),
      ),
    );
  const frame = await fixed();
  const early = await boxes();
  await panel.hover("#lines");
  // A wheel scrolls in steps, and what is drawn meanwhile may end one early: a person turns it on.
  const turned = async () => {
    await panel.mouse.wheel(0, -100_000);
    return (await boxes()).scrolled;
  };
  await expect.poll(turned, soon).toBe(0);
  await panel.waitForSelector("#latest");
  const left = await boxes();
  await panel.waitForSelector("#send", { timeout: 60_000 });
  await expect.poll(() => panel.locator(".agent > p").count(), soon).toBe(60);
  const late = await boxes();
  // The last of the early ones were still growing or are the mark at the end.
  const settled = early.tops.slice(0, 5);
  expect(late.tops.slice(0, 5)).toEqual(settled);
  expect(late.scrolled).toBe(left.scrolled);
  await expect.poll(fixed, soon).toEqual(frame);
  await panel.click("#latest");
  await panel.waitForSelector("#latest", { state: "detached" });
  const end = () => panel.$eval("#lines", (box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));
  await expect.poll(end, soon).toBeLessThan(2);
  await say("something long again");
  await expect.poll(() => panel.locator(".agent").count(), soon).toBe(2);
  await panel.waitForSelector("#send", { timeout: 60_000 });
  await expect.poll(end, soon).toBeLessThan(2);
  expect(await panel.locator("#latest").count()).toBe(0);
});

test("a turn goes on while the panel is loaded again", async () => {
  await panel.click("#new");
  await say("something slow");
  await expect.poll(() => lastAnswer().textContent(), soon).toContain("Paragraph 1");
  await panel.reload();
  await expect.poll(() => panel.locator("#lines .person").allTextContents(), soon).toEqual(["something slow"]);
  await panel.click("#stop");
  await expect.poll(() => panel.locator("#lines .notice").allTextContents(), soon).toEqual(["Stopped by the user."]);
  await panel.waitForSelector("#send");
});

test("two panels show what the command line asks, and both drop it when one decides", async () => {
  const [page] = await f.open(videos[0] as string);
  const second = await openPanel(f, "dark");
  const id = await f.idOf(videos[0] as string);
  const run = f.server.cli("call", "closeTabs", "--tab-ids", id);
  for (const each of [panel, second]) {
    await waiting("1", each);
    await each.click("#waiting");
    await each.waitForSelector("#waiting-sheet .deny");
    expect(await each.textContent("#waiting-sheet .asker")).toContain("a program or the command line");
  }
  await second.fill("#waiting-sheet .reason", "I still watch it");
  await second.click("#waiting-sheet .deny");
  for (const each of [panel, second]) {
    await waiting("0", each);
    await each.waitForSelector("#waiting-sheet .deny", { state: "detached" });
  }
  const { code, errors } = await run;
  expect(code).toBe(5);
  expect(errors).toContain("I still watch it");
  expect(page?.isClosed()).toBe(false);
  await second.click("#waiting");
  await second.click("#conversations");
  await second.locator(".conversation", { hasText: "YouTube" }).first().click();
  await expect.poll(() => second.locator(".agent li").count(), soon).toBe(2);
  await picture(second, "panel-dark");
  await second.click("#conversations");
  await second.waitForSelector(".conversation");
  await picture(second, "panel-conversations");
  await second.close();
  await panel.bringToFront();
  await panel.click("#waiting");
});

test("a call is changed before it runs, and the server runs what was changed; a pattern is remembered", async () => {
  const [, kept] = await f.open(videos[1] as string, videos[2] as string);
  const ids = await Promise.all([f.idOf(videos[1] as string), f.idOf(videos[2] as string)]);
  const run = f.server.cli("call", "closeTabs", "--tab-ids", ids.join(","));
  await panel.bringToFront();
  await waiting("1");
  await panel.click("#waiting");
  const card = panel.locator("#waiting-sheet .approval");
  await card.locator(".edit").click();
  await card.locator(".items input").nth(1).uncheck();
  await card.locator(".remember summary").click();
  await card.getByLabel("Do not ask whoever asked this again").check();
  await card.locator(".pattern input[type=checkbox]").check();
  expect(await card.locator(".pattern > input").inputValue()).toBe("http://youtube.test/*");
  await picture(panel, "panel-edit");
  await card.locator(".approve").click();
  await expect.poll(() => card.textContent(), soon).toMatch(/Approved by you.*with changes · remembered/);
  const { code, out } = await run;
  expect({ code, out }).toMatchObject({ code: 0, out: expect.stringMatching(/closed count\s+1/) });
  await expect.poll(async () => (await f.realTabs()).map(({ url }) => url), soon).not.toContain(videos[1]);
  expect(kept?.isClosed()).toBe(false);
  await panel.click("#waiting");
  // The same again, at an address that fits, is not asked about any more.
  await f.inStep();
  const again = await f.server.cli("call", "closeTabs", "--tab-ids", ids[1] as string);
  expect(again.code).toBe(0);
  await expect.poll(() => kept?.isClosed(), soon).toBe(true);
  await waiting("0");
});

test("force is the first thing that is read, and can be taken away before it runs", async () => {
  const url = "http://shop.test/";
  const [page] = await f.open(url);
  const run = f.server.cli("call", "closeTabs", "--tab-ids", await f.idOf(url), "--force");
  await panel.bringToFront();
  await waiting("1");
  await panel.click("#waiting");
  const card = panel.locator("#waiting-sheet .approval");
  expect(await card.locator(".call > :first-child").textContent()).toMatch(
    /^Force is on\..*What was typed in them is lost/,
  );
  await card.locator(".edit").click();
  await card.getByLabel("Force").selectOption("");
  await card.locator(".grave").waitFor({ state: "detached" });
  await card.locator(".approve").click();
  expect((await run).code).toBe(0);
  await expect.poll(() => page?.isClosed(), soon).toBe(true);
  await panel.click("#waiting");
});

test("the settings have the same look", async () => {
  await f.page.bringToFront();
  await f.page.setViewportSize({ width: 720, height: 900 });
  await picture(f.page, "settings");
  await panel.bringToFront();
});

test("the head says how this browser is connected", async () => {
  await expect.poll(() => panel.getAttribute("#state", "data-state"), soon).toBe("online");
  await expect.poll(() => panel.textContent("#state"), soon).toMatch(/^Connected · work laptop/);
  await panel.click("#state");
  await panel.waitForSelector("#connection-sheet");
  expect(await panel.textContent("#connection-sheet")).toContain(f.server.url);
  await panel.click("#pause");
  await expect.poll(() => panel.textContent("#state .text"), soon).toBe("Paused");
  await expect.poll(() => panel.getAttribute("#pause", "aria-checked"), soon).toBe("true");
  const refused = await f.server.cli("call", "getActiveTab", "--device", "work laptop");
  expect(refused.code).toBe(5);
  await panel.click("#remedy");
  await expect.poll(() => panel.textContent("#state .text"), soon).toBe("Connected");
  expect((await f.server.cli("call", "getActiveTab", "--device", "work laptop")).code).toBe(0);
  await panel.keyboard.press("Escape");
});

test("a server that goes away is said in the head and above the field, and said no more when it is back", async () => {
  await panel.fill("#message", "typed meanwhile");
  await f.server.down();
  await expect.poll(() => panel.getAttribute("#state", "data-state"), soon).toBe("waiting");
  await expect.poll(() => panel.textContent("#state .text"), soon).toMatch(/^Reconnecting (in \d+ s|now)$/);
  await panel.click("#conversations"); // asks the server
  await expect.poll(() => panel.textContent("#obstacle"), soon).toBe("The server cannot be reached.");
  await panel.keyboard.press("Escape");
  await panel.click("#state");
  await panel.waitForSelector("#remedy");
  await f.server.up();
  // It may have tried again by itself just now.
  await panel.evaluate(() => document.querySelector<HTMLButtonElement>("#remedy")?.click());
  await expect.poll(() => panel.textContent("#state .text"), again).toBe("Connected");
  await panel.keyboard.press("Escape");
  // It is asked again by itself before long, or at once.
  await panel.evaluate(() => document.querySelector<HTMLButtonElement>(".problem button")?.click());
  await panel.waitForSelector("#obstacle", { state: "detached" });
  expect(await panel.inputValue("#message")).toBe("typed meanwhile");
});

test("it fits into 320 pixels, and with letters twice as large", async () => {
  const overflow = () =>
    panel.evaluate(() => {
      const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
      const out = [...document.querySelectorAll("#root *")].filter((each) => {
        const { right, width, left } = each.getBoundingClientRect();
        // What is cut off on purpose ends with dots.
        const cut = each.parentElement?.closest(".what, .title, .chip, .model, .spoken") ?? null;
        return cut === null && width > 1 && (right > innerWidth + 1 || left < -1);
      });
      return [wide, ...out.map((each) => each.outerHTML.slice(0, 80))];
    });
  await panel.click("#conversations");
  await panel.locator(".conversation", { hasText: "YouTube" }).first().click();
  await expect.poll(() => panel.locator(".agent li").count(), soon).toBe(2);
  await panel.setViewportSize({ width: 320, height: 640 });
  await expect.poll(overflow, soon).toEqual([0]);
  await picture(panel, "panel-narrow");
  for (const sheet of ["#conversations", "#waiting", "#state"]) {
    await panel.click(sheet);
    await panel.waitForSelector(".sheet");
    await expect.poll(overflow, soon).toEqual([0]);
    await panel.click(sheet);
    await panel.waitForSelector(".sheet", { state: "detached" });
  }
  await panel.setViewportSize(panelSize);
  await panel.evaluate(() => {
    document.documentElement.style.fontSize = "200%";
  });
  await expect.poll(overflow, soon).toEqual([0]);
  await panel.evaluate(() => {
    document.documentElement.style.fontSize = "";
  });
});
