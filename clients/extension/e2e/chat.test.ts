/** The headline journey: one sentence in the side panel closes the right tabs on the right device. */
import { Scope } from "@throwbar/es/pb/option";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Browser } from "./harness/browser.js";
import { Fixture, soon } from "./harness/fixture.js";
import { Model } from "./harness/model.js";
import { pairBrowser } from "./harness/pairing.js";

let model: Model;
let f: Fixture;
let home: Browser;
let homePage: Page;
let panel: Page;

const youtube = ["http://youtube.test/watch?v=1", "http://youtube.test/watch?v=2", "http://m.youtube.test/feed"];
const others = ["http://mail.test/", "http://wiki.test/"];
const question = "close my YouTube tabs on my work laptop";
const answer = "I closed 3 YouTube tabs on work laptop. The others are still open.";

const closing = {
  match: "YouTube",
  replies: [
    { calls: [{ name: "listDevices", arguments: "{}" }] },
    { calls: [{ name: "searchTabs", arguments: '{"query":"youtube","deviceId":"{{listDevices.deviceId[1]}}"}' }] },
    { calls: [{ name: "closeTabs", arguments: '{"tabIds":"{{searchTabs.tabId}}"}' }] },
    { text: answer, piece: 6, pace_millis: 120 },
  ],
};

const story = `Once upon a time ${"there was a switch on the main line, ".repeat(8)}and it was set.`;

/** What the model does; the story is told with a pause before each piece. */
function script(storyMs: number): Promise<void> {
  return model.script(
    closing,
    { match: "story", replies: [{ text: story, piece: 8, pace_millis: storyMs }] },
    { match: "after that", replies: [{ text: "And that was that." }] },
    { match: "long", replies: [{ text: "word ".repeat(2000), piece: 5, pace_millis: 50 }] },
  );
}

beforeAll(async () => {
  model = await Model.start();
  await script(1000);
  f = await Fixture.start("work laptop", model.env);
  home = await Browser.start(f.server.port, f.pages.port);
  ({ page: homePage } = await pairBrowser(home, f.server, f.api, "home pc"));
  for (const url of youtube) {
    await home.openTab(url);
  }
});

afterAll(async () => {
  await home?.stop();
  await f?.stop();
  await model?.stop();
});

test("the panel says that it needs an operator token, and takes one from the settings", async () => {
  panel = await f.browser.open("panel.html");
  await expect.poll(() => panel.textContent("#obstacle"), soon).toContain("operator token");
  expect(await panel.isDisabled("#message")).toBe(true);
  const { secret } = await f.api.tokens.createToken({ name: "side panel", scope: Scope.OPERATOR });
  await f.page.fill("#operator", secret);
  await f.page.click("#operator-button");
  await panel.waitForSelector("#message:enabled");
  await expect.poll(() => panel.textContent(".model"), soon).toBe("scripted");
  await expect.poll(() => panel.textContent("#state"), soon).toMatch(/^Connected · work laptop/);
});

test("one sentence closes the YouTube tabs of the work laptop and nothing else, and the answer is streamed", async () => {
  await f.closeSites();
  await f.open(...youtube, ...others);
  await panel.click("#new");
  await panel.bringToFront();
  await panel.evaluate(() => {
    const lengths: number[] = [];
    Object.assign(globalThis, { lengths });
    new MutationObserver(() => {
      const text = document.querySelector("#lines .agent:last-of-type")?.textContent ?? "";
      if (text.length > (lengths.at(-1) ?? 0)) {
        lengths.push(text.length);
      }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await panel.fill("#message", question);
  await panel.press("#message", "Enter");
  await expect.poll(() => panel.textContent("#lines .agent:last-of-type"), soon).toBe(answer);
  await panel.waitForSelector("#stop", { state: "detached" });
  expect(await panel.textContent("#lines .person")).toBe(question);
  const tools = await panel.$$eval("details.tool", (all) =>
    all.map((each) => [each.getAttribute("data-name"), each.getAttribute("data-outcome")]),
  );
  expect(tools).toEqual([
    ["listDevices", "succeeded"],
    ["searchTabs", "succeeded"],
    ["closeTabs", "succeeded"],
  ]);
  const close = panel.locator('details.tool[data-name="closeTabs"]');
  expect(await close.locator("summary").textContent()).toBe("Close tabs · work laptop · 3 closed: done");
  await close.locator("summary").click();
  const told = await close.locator("pre.told").textContent();
  expect(JSON.parse(told ?? "")).toMatchObject({ closedCount: 3, deviceName: "work laptop" });
  const lengths = await panel.evaluate(() => (globalThis as unknown as { lengths: number[] }).lengths);
  // Pieces that come within one frame are drawn together.
  expect(lengths.length).toBeGreaterThan(1);
  const open = (await f.realTabs()).map(({ url }) => url).filter((url) => url.includes(".test/"));
  expect(open.sort()).toEqual([...others].sort());
  const atHome = (await home.tabs(homePage)).map(({ url }) => url).filter((url) => url.includes(".test/"));
  expect(atHome.sort()).toEqual([...youtube].sort());
  expect(await model.violations()).toEqual([]);
});

test("the conversation is there again when the panel is opened again", async () => {
  await panel.close();
  panel = await f.browser.open("panel.html");
  await expect.poll(() => panel.textContent("#lines .agent:last-of-type"), soon).toBe(answer);
  await expect.poll(() => panel.locator("details.tool").count(), soon).toBe(3);
});

test("Stop ends the turn", async () => {
  await panel.click("#new");
  await panel.fill("#message", "tell me something long");
  await panel.click("#send");
  await panel.click("#stop");
  await expect.poll(() => panel.locator("#lines .notice").allTextContents(), soon).toEqual(["Stopped by the user."]);
  await panel.waitForSelector("#stop", { state: "detached" });
});

test("a server that is killed in the middle of an answer: both panels go on, and what waited is answered, all of it once", async () => {
  await f.server.up();
  await script(1000);
  await panel.click("#new");
  await panel.fill("#message", "tell me a story");
  await panel.press("#message", "Enter");
  await expect
    .poll(() => panel.locator("#lines .agent").allTextContents(), soon)
    .toEqual([expect.stringMatching(/^Once upon/)]);
  await panel.fill("#message", "and after that?");
  await panel.press("#message", "Enter");
  // One that is opened in the middle has all that was written by then, and what comes.
  const second = await f.browser.open("panel.html");
  const answers = (page: Page) => page.locator("#lines .agent").allTextContents();
  try {
    await expect.poll(() => answers(second), soon).toEqual([expect.stringMatching(/^Once upon a time there/)]);
    await expect
      .poll(() => second.locator("#conversations .handle").getAttribute("title"), soon)
      .toContain("shortest beginning of its id");
    await expect.poll(() => second.locator(".queue li").count(), soon).toBe(1);
    await f.server.down("SIGKILL");
    await panel.waitForSelector("#obstacle");
    // It was slow, so that all of this came into the middle of it.
    await script(20);
    await f.server.up();
    for (const page of [panel, second]) {
      await expect.poll(() => answers(page), { ...soon, timeout: 30_000 }).toEqual([story, "And that was that."]);
      await expect
        .poll(() => page.locator("#lines .person").allTextContents(), soon)
        .toEqual(["tell me a story", "and after that?"]);
      await expect
        .poll(() => page.locator("#lines .notice").allTextContents(), soon)
        .toEqual(["The server was started again, and the turn goes on."]);
      await page.waitForSelector("#send");
      await expect.poll(() => page.locator(".queue, #obstacle").count(), soon).toBe(0);
    }
  } finally {
    await second.close();
  }
});

test("a turn goes on when the panel is closed, and the next panel shows how it ended", async () => {
  await panel.click("#new");
  await f.open(youtube[0] as string);
  await panel.fill("#message", question);
  await panel.click("#send");
  await panel.waitForSelector("details.tool");
  await panel.close();
  panel = await f.browser.open("panel.html");
  await expect.poll(() => panel.textContent("#lines .agent:last-of-type"), soon).toBe(answer);
  await panel.waitForSelector("#stop", { state: "detached" });
});

test("the real side panel opens", async () => {
  await f.page.evaluate(() => {
    const button = document.createElement("button");
    button.id = "open-side-panel";
    button.textContent = "open";
    button.onclick = async () => {
      const { id } = await chrome.windows.getCurrent();
      await chrome.sidePanel.open({ windowId: id ?? 0 });
    };
    document.body.append(button);
  });
  await f.page.bringToFront();
  await f.page.click("#open-side-panel");
  const contexts = () =>
    f.page.evaluate(async () =>
      (await chrome.runtime.getContexts({ contextTypes: [chrome.runtime.ContextType.SIDE_PANEL] })).map(
        ({ documentUrl }) => documentUrl?.replace(/.*\//, ""),
      ),
    );
  await expect.poll(contexts, soon).toEqual(["panel.html"]);
  // It runs: beside the panel in the tab it wants to be the one that follows the approvals.
  const locks = () =>
    f.page.evaluate(async () => {
      const { held = [], pending = [] } = await navigator.locks.query();
      const follows = ({ name }: LockInfo) => name === "panel approvals";
      return [held.filter(follows).length, pending.filter(follows).length];
    });
  await expect.poll(locks, soon).toEqual([1, 1]);
});
