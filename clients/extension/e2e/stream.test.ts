/** The conversation under load and under attack, in real Chromium: a long one that streams, and a model that is hostile. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Chat } from "../src/panel/chat.js";
import type { FakeAgent } from "../test/fake/agent.js";
import { soon } from "./harness/fixture.js";

/** What the stage has, in the page. */
declare const stage: { readonly agent: FakeAgent; readonly chat: Chat; readonly work: { compared: number } };

const here = fileURLToPath(new URL("..", import.meta.url));
let browser: Browser;
let script: string;
let styles: string;

beforeAll(async () => {
  const built = await build({
    entryPoints: [`${here}e2e/stage/stage.tsx`],
    bundle: true,
    format: "iife",
    target: "chrome120",
    minify: true,
    write: false,
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  script = built.outputFiles[0]?.text ?? "";
  styles = (
    await Promise.all(["page.css", "panel.css", "cards.css"].map((name) => readFile(`${here}static/${name}`, "utf8")))
  ).join("\n");
  const args = ["--disable-gpu", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
});

afterAll(async () => {
  await browser?.close();
});

async function open(): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 400, height: 720 } });
  await page.setContent('<!doctype html><html lang="en"><body class="panel"><div id="root"></div></body></html>');
  await page.addStyleTag({ content: styles });
  await page.addScriptTag({ content: script });
  await page.waitForSelector("#message:enabled");
  await expect.poll(() => page.evaluate(() => stage.agent.followers), soon).toBe(1);
  return page;
}

/** Makes a conversation of so many lines, a third of them tool calls. */
async function fill(page: Page, lines: number): Promise<void> {
  await page.evaluate((count) => {
    const { agent, chat } = stage;
    void chat.send("go");
    agent.say({ case: "turnStarted", value: {} });
    const content = JSON.stringify({ mark: "m", data: { deviceName: "laptop", closedCount: 3 }, end: "m" });
    for (let at = 1; at < count; at++) {
      const callId = `c${at}`;
      switch (at % 3) {
        case 0:
          agent.say({ case: "toolCall", value: { callId, name: "closeTabs", arguments: '{"tabIds":["a_tb-1"]}' } });
          agent.say({ case: "toolResult", value: { callId, name: "closeTabs", outcome: 1, content } });
          break;
        case 1:
          agent.say({ case: "message", value: { role: 2, text: `Answer **${at}** with \`code\`.\n\n- one\n- two` } });
          break;
        default:
          agent.say({ case: "notice", value: { code: "x", text: `Notice ${at}` } });
      }
    }
  }, lines);
  await expect.poll(() => page.evaluate(() => stage.chat.state.thread.lines.length), soon).toBe(lines);
  await page.evaluate(frames);
}

/** Until what was set is drawn. */
const frames = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));

interface Load {
  readonly ms: number;
  readonly frames: number;
  readonly longest: number;
  /** Changes inside lines that were there before. */
  readonly touched: number;
  /** Elements and components that were compared in all frames together. */
  readonly compared: number;
  /** Elements on the page at the start. */
  readonly elements: number;
  readonly text: number;
}

test("5,000 pieces under 500 lines: nothing but the last line is drawn again", async () => {
  const page = await open();
  await fill(page, 500);
  const load = await page.evaluate(async (): Promise<Load> => {
    const { agent, chat } = stage;
    const box = document.querySelector("#lines") as HTMLElement;
    const old = new Set(box.querySelectorAll("*"));
    let touched = 0;
    const comparedBefore = stage.work.compared;
    const watcher = new MutationObserver((changes) => {
      for (const { target } of changes) {
        const element = target instanceof Element ? target : target.parentElement;
        // A line is added to the last chunk's parent; what counts is what is inside lines that were there.
        touched += element !== null && element !== box && old.has(element) && !element.matches(".working") ? 1 : 0;
      }
    });
    watcher.observe(box, { subtree: true, childList: true, characterData: true, attributes: true });
    let drawn = 0;
    let longest = 0;
    let last = performance.now();
    const counting = () => {
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      drawn++;
      timer = requestAnimationFrame(counting);
    };
    let timer = requestAnimationFrame(counting);
    const started = performance.now();
    for (let at = 0; at < 5000; at++) {
      agent.say({ case: "textDelta", value: { text: at % 100 === 99 ? "end.\n\n" : "word " } });
      if (at % 10 === 9) {
        await new Promise((resolve) => setTimeout(resolve));
      }
    }
    const whole = 5000 * 5;
    while ((document.querySelector("#lines .agent:last-of-type")?.textContent?.length ?? 0) < whole - 200) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    const ms = performance.now() - started;
    cancelAnimationFrame(timer);
    const end = chat.state.thread.lines.at(-1);
    const compared = stage.work.compared - comparedBefore;
    return {
      ms,
      frames: drawn,
      longest,
      touched,
      compared,
      elements: old.size,
      text: end?.kind === "agent" ? end.text.length : 0,
    };
  });
  const perFrame = Math.round(load.compared / load.frames);
  console.log(
    `500 lines (${load.elements} elements), 5,000 pieces: ${load.ms.toFixed(0)} ms in ${load.frames} frames, longest ${load.longest.toFixed(0)} ms, ${perFrame} compared a frame`,
  );
  expect(perFrame).toBeLessThan(load.elements / 10);
  expect(load.touched).toBe(0);
  expect(load.text).toBe(50 * (99 * 5 + 6));
  await page.close();
});

const attacks = [
  "<img src=x onerror='window.hit=1'><script>window.hit=1</script><svg onload=window.hit=1>",
  "[click](javascript:window.hit=1) javascript:window.hit=1 data:text/html,<script>1</script>",
  "![pixel](https://evil.example/pixel.png) <iframe src=https://evil.example/></iframe>",
  'https://bank.example@evil.example/ and https://аpple.com/ and https://ok.example/path?q="><img src=x>',
  `\u202egnp.exe \u2066\u200b zalgo: a${"\u0301".repeat(300)}`,
  "```html\n<style>*{display:none}</style><img src=x onerror=window.hit=1>\n```",
  "*".repeat(5000) + "`".repeat(5001),
  "x".repeat(20_000),
];

test("what a model writes stays text: nothing is loaded, run, opened, or drawn over what is beside it", async () => {
  const page = await open();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  const opened: Page[] = [];
  page.context().on("page", (other) => opened.push(other));
  await page.evaluate((texts) => {
    const { agent, chat } = stage;
    void chat.send(texts[0] ?? "");
    agent.say({ case: "turnStarted", value: {} });
    for (const [at, text] of texts.entries()) {
      agent.say({ case: "textDelta", value: { text } });
      agent.say({ case: "message", value: { role: 2, text } });
      agent.say({ case: "reasoningDelta", value: { text } });
      const callId = `c${at}`;
      const data = {
        deviceName: text,
        closedCount: 1,
        items: [{ id: "x", status: text, detail: text }],
        tabs: [{ tabId: "x", title: text, url: text }],
      };
      agent.say({
        case: "toolCall",
        value: { callId, name: "closeTabs", arguments: JSON.stringify({ tabIds: [text] }) },
      });
      agent.say({
        case: "toolResult",
        value: { callId, name: text.slice(0, 50), outcome: 1, content: JSON.stringify({ mark: "m", data, end: "m" }) },
      });
      agent.say({ case: "notice", value: { code: "x", text } });
      agent.say({ case: "error", value: { message: text } });
    }
  }, attacks);
  await expect.poll(() => page.locator("details.tool").count(), soon).toBe(attacks.length);
  for (const tool of await page.locator("details.tool").all()) {
    await tool.evaluate((each: HTMLDetailsElement) => {
      each.open = true;
    });
  }
  await expect.poll(() => page.locator(".tool .fold").count(), soon).toBe(attacks.length);
  const found = await page.evaluate(() => ({
    hit: "hit" in globalThis,
    foreign: [
      ...document.querySelectorAll("#root :is(img, script, iframe, style, link, object, video, form:not(.compose))"),
    ].length,
    handlers: [...document.querySelectorAll("#root *")].filter((each) =>
      [...each.attributes].some(({ name }) => name.startsWith("on")),
    ).length,
    links: [
      ...new Set(
        [...document.querySelectorAll("a")].map(
          (each) => `${each.getAttribute("href")} ${each.textContent} ${each.target} ${each.rel}`,
        ),
      ),
    ],
    hidden: (document.querySelector("#root")?.textContent ?? "").match(/[\u202a-\u202e\u2066-\u2069\u200b]/g) ?? [],
    wide: document.documentElement.scrollWidth - innerWidth,
  }));
  const rel = "_blank noopener noreferrer nofollow";
  const link = (url: string) => `${url} ${url} ${rel}`;
  expect(found).toEqual({
    hit: false,
    foreign: 0,
    handlers: 0,
    links: [
      link("https://evil.example/pixel.png"),
      link("https://evil.example/"),
      link("https://xn--pple-43d.com/"),
      link("https://ok.example/path?q="),
    ],
    hidden: [],
    wide: 0,
  });
  expect(asked).toEqual([]);
  expect(opened).toEqual([]);
  // Each line paints inside its own box: marks that are piled up do not reach the line above.
  expect(
    await page
      .locator(".agent")
      .first()
      .evaluate((each) => getComputedStyle(each).overflow),
  ).toBe("clip");
  await page.close();
});
