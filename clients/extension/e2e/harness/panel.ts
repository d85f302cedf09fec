/** Helpers for tests of the side panel: its page, its token, and what a person sees of it. */
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { Scope } from "@throwbar/es/pb/option";
import { PolicyService, Verdict } from "@throwbar/es/pb/policy";
import { createTransport } from "@throwbar/es/transport";
import type { Page } from "playwright-core";
import type { Fixture } from "./fixture.js";

export const panelSize = { width: 400, height: 720 };

/** Gives this browser's panel a token, through the settings, as a person does. */
export async function giveToken(f: Fixture): Promise<void> {
  const { secret } = await f.api.tokens.createToken({ name: "side panel", scope: Scope.OPERATOR });
  await f.page.fill("#operator", secret);
  await f.page.click("#operator-button");
  await f.page.waitForSelector("#operator-result:not(:empty)");
}

export async function openPanel(f: Fixture, scheme: "light" | "dark" = "light"): Promise<Page> {
  const panel = await f.browser.open("panel.html");
  await panel.setViewportSize(panelSize);
  await panel.emulateMedia({ colorScheme: scheme });
  await panel.waitForSelector("#message:enabled");
  return panel;
}

/** From now on this command asks a person. */
export async function askFirst(f: Fixture, tool: string): Promise<void> {
  const token = await f.server.ownerToken();
  const policy = createClient(PolicyService, createTransport({ baseUrl: f.server.url, token: () => token }));
  await policy.addRule({ rule: { verdict: Verdict.ASK, tool, note: "closing is asked about" } });
}

const shots = fileURLToPath(new URL("../../../../docs/screenshots/", import.meta.url));

/** Takes a picture for the documentation, where that is asked for. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env.UPDATE_SCREENSHOTS === "1") {
    await mkdir(shots, { recursive: true });
    await page.screenshot({ path: `${shots}${name}.png`, animations: "disabled", caret: "hide" });
  }
}

/** What has the focus, as a person would call it. */
export function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const element = document.activeElement;
    return element?.id || element?.getAttribute("aria-label") || element?.textContent?.trim() || element?.tagName || "";
  });
}
