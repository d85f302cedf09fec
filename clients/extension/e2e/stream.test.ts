/** The conversation under load and under attack, in real Chromium: a long one that streams, and a model that is hostile. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, test } from "vitest";
import type { Chat } from "../src/panel/chat.js";
import type { FakeAgent } from "../test/fake/agent.js";

/** What the stage has, in the page. */
declare const stage: { readonly agent: FakeAgent; readonly chat: Chat };

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
  styles = (await Promise.all(["page.css", "panel.css"].map((name) => readFile(`${here}static/${name}`, "utf8")))).join(
    "\n",
  );
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
  return page;
}

test("debug", async () => {
  const page = await open();
  await page.evaluate(() => {
    document.documentElement.style.fontSize = "200%";
  });
  console.log(
    await page.evaluate(() => [
      document.documentElement.scrollWidth,
      ...[...document.querySelectorAll("*")]
        .filter((e) => e.getBoundingClientRect().right > 401)
        .map((e) => `${e.outerHTML.slice(0, 90)} ${JSON.stringify(e.getBoundingClientRect())}`),
    ]),
  );
});
