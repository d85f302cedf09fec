/** A real Chromium as a place for cases. */
import { fileURLToPath } from "node:url";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { type CommandRequest, CommandRequestSchema, type Outcome, OutcomeSchema } from "@throwbar/es/pb/device";
import { build } from "esbuild";
import type { Dialog, Page } from "playwright-core";
import { expect } from "vitest";
import { type BrowserChange, BrowserError, type BrowserPort } from "../../src/platform/port.js";
import type { Identity } from "../../src/state/identity.js";
import type { Hanging, World } from "../../test/cases/stage.js";
import type { Browser } from "./browser.js";
import type { Answer, CasesPage } from "./casespage.js";

declare const cases: CasesPage;

const folder = fileURLToPath(new URL(".", import.meta.url));

async function pageScript(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [`${folder}casespage.ts`],
    bundle: true,
    write: false,
    format: "iife",
    target: "chrome120",
    logLevel: "warning",
  });
  return outputFiles[0]?.text ?? "";
}

/** The port, each call of which is made by the real adapter in the extension's page. */
function remote(page: Page): BrowserPort {
  const part = (name: "tabs" | "windows" | "groups") =>
    new Proxy({} as Record<string, unknown>, {
      get:
        (_, method: string) =>
        async (...args: unknown[]) => {
          const answer: Answer = await page.evaluate(([p, m, a]) => cases.call(p, m, a), [name, method, args] as const);
          if ("kind" in answer) {
            throw new BrowserError(answer.kind, answer.message, answer.missingId);
          }
          return answer.value;
        },
    });
  return {
    tabs: part("tabs"),
    windows: part("windows"),
    groups: part("groups"),
    onChange: () => {
      throw new Error("ask the world for its changes");
    },
    stayAwake: async () => {},
  } as unknown as BrowserPort;
}

export class ChromiumWorld implements World {
  readonly browser: BrowserPort;
  /** How long the browser takes to say what there is, as it was before this case. */
  #lookMs = 0;
  readonly #real: Browser;
  readonly #page: Page;
  readonly #identity: Identity;
  #waiting: { readonly pages: number; readonly enough: () => void }[] = [];
  #home = 0;
  #dialogs: Dialog[] = [];
  /** A call may hang in the worker. */
  #hangs = false;

  private constructor(real: Browser, page: Page, identity: Identity) {
    this.#real = real;
    this.#page = page;
    this.#identity = identity;
    this.browser = remote(page);
    // Left to itself, the test's driver answers for the person at once, also on a page that it has not told of yet.
    real.context.on("dialog", (dialog) => {
      this.#dialogs.push(dialog);
      for (const { enough } of this.#waiting.filter(({ pages }) => pages <= this.#dialogs.length)) {
        enough();
      }
      this.#waiting = this.#waiting.filter(({ pages }) => pages > this.#dialogs.length);
    });
  }

  // Usually so long; longer where the machine is busy.
  get momentMs(): number {
    return Math.min(5000, Math.max(700, 70 * this.#lookMs));
  }

  get shortMs(): number {
    return Math.min(10_000, Math.max(1500, 150 * this.#lookMs));
  }

  /** The page is the extension's settings page, and the browser is paired. */
  static async start(real: Browser, page: Page, deviceId: string): Promise<ChromiumWorld> {
    await page.evaluate(await pageScript());
    const boot = await page.evaluate(async () => {
      for (;;) {
        const { boot: made } = await chrome.storage.session.get("boot");
        if (typeof made === "string") {
          return made;
        }
        await new Promise((resolve) => setTimeout(resolve, 20)); // the worker has just started
      }
    });
    const world = new ChromiumWorld(real, page, { device: deviceId, boot });
    await world.clean();
    return world;
  }

  /** Brings the browser to what a case starts from: one window, one tab. */
  async clean(): Promise<void> {
    await this.answer("leave");
    this.#home = await this.#page.evaluate(() => cases.clean());
    const looked = performance.now();
    await this.#page.evaluate(() => chrome.tabs.query({}));
    this.#lookMs = Math.round(performance.now() - looked);
    if (this.#hangs) {
      this.#hangs = false;
      await (await this.#real.worker()).evaluate(() => {
        const { restore } = globalThis as { restore?: () => void };
        restore?.();
      });
    }
    await this.answer("leave");
  }

  async identity(): Promise<Identity> {
    return this.#identity;
  }

  openTab(url: string, windowId = this.#home): Promise<number> {
    return this.#page.evaluate(([to, at]) => cases.openTab(to, at), [url, windowId] as const);
  }

  openWindow(url: string, kind: "normal" | "popup"): Promise<number> {
    return this.#page.evaluate(([to, type]) => cases.openWindow(to, type), [url, kind] as const);
  }

  async click(id: number): Promise<void> {
    const [url, front] = await this.#page.evaluate(async (tab) => {
      const { windowId, url } = await chrome.tabs.get(tab);
      const [active] = await chrome.tabs.query({ windowId, active: true });
      await chrome.tabs.update(tab, { active: true });
      return [url, active?.id ?? 0] as const;
    }, id);
    const page = await this.#visible(url ?? "");
    // A click that makes the page show a message has not ended while it does.
    const clicked = page.click("input", { timeout: 10_000 });
    clicked.catch(() => {});
    await Promise.race([clicked, this.asked()]);
    await this.#page.evaluate(async (tab) => chrome.tabs.update(tab, { active: true }), front);
  }

  /** The page of a tab in front. The driver may know others with the same address, which were put to sleep or are closing. */
  async #visible(url: string): Promise<Page> {
    let found: Page | undefined;
    const look = async () => {
      for (const page of this.#real.context.pages().filter((each) => each.url() === url)) {
        const late = new Promise<string>((resolve) => setTimeout(() => resolve("late"), 1000));
        const shown = page.evaluate(() => document.visibilityState).catch(() => "gone");
        if ((await Promise.race([shown, late])) === "visible") {
          found = page;
        }
      }
      return found !== undefined;
    };
    await expect.poll(look, { interval: 20, timeout: 10_000 }).toBe(true);
    return found as Page;
  }

  async answer(how: "leave" | "stay"): Promise<void> {
    for (const dialog of this.#dialogs.splice(0)) {
      // A page that was destroyed asks nobody any more.
      await (how === "leave" ? dialog.accept() : dialog.dismiss()).catch(() => {});
    }
  }

  asked(pages = 1): Promise<void> {
    return this.#dialogs.length >= pages
      ? Promise.resolve()
      : new Promise((enough) => this.#waiting.push({ pages, enough }));
  }

  sleep(id: number): Promise<number> {
    return this.#page.evaluate(async (tab) => (await chrome.tabs.discard(tab))?.id ?? 0, id);
  }

  async close(id: number): Promise<void> {
    await this.#page.evaluate((tab) => void chrome.tabs.remove(tab).catch(() => {}), id);
    const open = async () => {
      await this.answer("leave");
      return this.#page.evaluate(async (tab) => (await chrome.tabs.query({})).some((each) => each.id === tab), id);
    };
    await expect.poll(open, { interval: 20, timeout: 10_000 }).toBe(false);
  }

  async closeWindow(windowId: number): Promise<void> {
    await this.#page.evaluate(async (id) => chrome.windows.remove(id), windowId);
  }

  async collapse(groupId: number): Promise<void> {
    await this.#page.evaluate(async (id) => chrome.tabGroups.update(id, { collapsed: true }), groupId);
  }

  drag(): void {
    throw new Error("nobody can drag a tab in a headless browser");
  }

  settled(): Promise<void> {
    return this.#page.evaluate((asking) => cases.settled(asking), this.#dialogs.length > 0);
  }

  changes(): Promise<BrowserChange[]> {
    return this.#page.evaluate(() => cases.takeChanges());
  }

  async deliver(request: CommandRequest): Promise<Outcome> {
    const encoded = base64Encode(toBinary(CommandRequestSchema, request));
    const outcome = await this.#page.evaluate((each) => cases.deliver(each), encoded);
    return fromBinary(OutcomeSchema, base64Decode(outcome));
  }

  async hang(method: Hanging, when: "before" | "after"): Promise<void> {
    this.#hangs = true;
    const worker = await this.#real.worker();
    await worker.evaluate(
      ([name, at]) => {
        const tabs = chrome.tabs as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
        const real = tabs[name] as (...args: unknown[]) => Promise<unknown>;
        const restore = () => {
          tabs[name] = real;
        };
        Object.assign(globalThis, { hangs: false, restore });
        tabs[name] = async (...args) => {
          restore();
          if (at === "after") {
            await real(...args);
          }
          Object.assign(globalThis, { hangs: true });
          return new Promise(() => {});
        };
      },
      [method, when] as const,
    );
  }

  async hanging(): Promise<void> {
    const worker = await this.#real.worker();
    const hangs = () => worker.evaluate(() => (globalThis as { hangs?: boolean }).hangs ?? false);
    await expect.poll(hangs, { interval: 20, timeout: 10_000 }).toBe(true);
  }

  stopWorker(): Promise<void> {
    return this.#real.killWorker(this.#page);
  }
}
