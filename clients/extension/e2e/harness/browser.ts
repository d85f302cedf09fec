/** A real Chromium with the extension. */
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, type CDPSession, chromium, type Page, type Worker } from "playwright-core";
import { expect, inject } from "vitest";

/** Pinned by the key in the manifest. */
export const extensionId = "illbokgpaofbmakbheaeacknengkefnn";

const pageOf = (name: string) => `chrome-extension://${extensionId}/${name}`;

const chromiumPath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Chromium refuses to start its sandbox for root. */
const rootOnly = process.getuid?.() === 0 ? ["--no-sandbox"] : [];

export interface RealTab {
  readonly id: number;
  readonly windowId: number;
  readonly index: number;
  readonly groupId: number;
  readonly url: string;
  readonly title: string;
  readonly active: boolean;
  readonly pinned: boolean;
  readonly muted: boolean;
  readonly discarded: boolean;
}

export interface WorkerKiller {
  stop(): Promise<void>;
  /** Stops it, and waits until it is. */
  stopped(): Promise<void>;
  /** Waits until one runs, stops it, and waits until it is. */
  stopOne(): Promise<void>;
  /** How often a worker was started. */
  started(): number;
  end(): Promise<void>;
}

export class Browser {
  readonly #folder: string;
  readonly #pagesPort: number;
  readonly #rules: readonly string[];
  #context: BrowserContext | undefined;

  private constructor(folder: string, pagesPort: number, rules: readonly string[]) {
    this.#rules = rules;
    this.#folder = folder;
    this.#pagesPort = pagesPort;
  }

  get runs(): boolean {
    return this.#context !== undefined;
  }

  get context(): BrowserContext {
    if (this.#context === undefined) {
      throw new Error("the browser does not run");
    }
    return this.#context;
  }

  get program(): string {
    return chromiumPath;
  }

  get extension(): string {
    return join(this.#folder, "extension");
  }

  get profile(): string {
    return join(this.#folder, "profile");
  }

  /** Further rules say where names lead. The manifest names the server's usual port only, and nobody can answer the browser's question for more in a test. */
  static async start(serverPort: number, pagesPort: number, ...rules: string[]): Promise<Browser> {
    const browser = new Browser(await mkdtemp(join(tmpdir(), "throwbar-browser-")), pagesPort, rules);
    await cp(inject("extension"), browser.extension, { recursive: true });
    const path = join(browser.extension, "manifest.json");
    const manifest = JSON.parse(await readFile(path, "utf8")) as { host_permissions: string[] };
    manifest.host_permissions.push(`http://127.0.0.1:${serverPort}/*`);
    await writeFile(path, JSON.stringify(manifest));
    await browser.up();
    return browser;
  }

  /** What Chromium has to be told, whoever starts it. */
  get args(): string[] {
    return [
      ...rootOnly,
      "--disable-gpu",
      `--disable-extensions-except=${this.extension}`,
      `--load-extension=${this.extension}`,
      `--host-resolver-rules=MAP *.test 127.0.0.1:${this.#pagesPort}${this.#rules.map((rule) => `,MAP ${rule}`).join("")}`,
    ];
  }

  /** Starts Chromium, with the profile that it had before. */
  async up(): Promise<void> {
    this.#context = await chromium.launchPersistentContext(this.profile, {
      executablePath: chromiumPath,
      headless: true,
      args: this.args,
    });
  }

  /** Ends Chromium, as a person does. */
  async down(): Promise<void> {
    // A Chromium in which a question of a page was cut off goes down faster than the driver expects.
    await this.#context?.close().catch((error: unknown) => {
      if (!String(error).includes("has been closed")) {
        throw error;
      }
    });
    this.#context = undefined;
  }

  async stop(): Promise<void> {
    await this.down();
    // Helper processes of a browser that has ended write a moment longer.
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  /** The worker that runs now: it has answered. One that was stopped just now may be listed still, and the next one not yet. */
  async worker(): Promise<Worker> {
    let found: Worker | undefined;
    const look = async () => {
      for (const each of this.context.serviceWorkers()) {
        const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 2000));
        const runs = each.evaluate(() => true).catch(() => false);
        found = (await Promise.race([runs, late])) ? each : found;
      }
      return found !== undefined;
    };
    await expect.poll(look, { interval: 20, timeout: 30_000 }).toBe(true);
    return found as Worker;
  }

  async open(name: "options.html" | "panel.html"): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(pageOf(name));
    return page;
  }

  async openTab(url: string): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(url);
    return page;
  }

  /** What the browser itself says of its tabs, read from an extension page so that no worker is woken. */
  async tabs(page: Page): Promise<RealTab[]> {
    return page.evaluate(async () =>
      (await chrome.tabs.query({})).map((tab) => ({
        id: tab.id ?? -1,
        windowId: tab.windowId,
        index: tab.index,
        groupId: tab.groupId,
        url: tab.pendingUrl || tab.url || "",
        title: tab.title ?? "",
        active: tab.active,
        pinned: tab.pinned,
        muted: tab.mutedInfo?.muted ?? false,
        discarded: tab.discarded,
      })),
    );
  }

  async cdp(page: Page): Promise<CDPSession> {
    return this.context.newCDPSession(page);
  }

  /** Stops the extension's worker as the browser does, whenever it is told to. */
  async workerKiller(page: Page): Promise<WorkerKiller> {
    const session = await this.cdp(page);
    let started = 0;
    let stopped = 0;
    const statuses = new Map<string, string>();
    session.on("ServiceWorker.workerVersionUpdated", ({ versions }) => {
      for (const { versionId, runningStatus } of versions) {
        const changed = runningStatus !== statuses.get(versionId);
        started += changed && runningStatus === "starting" ? 1 : 0;
        stopped += changed && runningStatus === "stopped" ? 1 : 0;
        statuses.set(versionId, runningStatus);
      }
    });
    await session.send("ServiceWorker.enable");
    const stop = async () => {
      await session.send("ServiceWorker.stopAllWorkers");
    };
    const ended = async () => {
      const before = stopped;
      await stop();
      await expect.poll(() => stopped, { timeout: 30_000, interval: 5 }).toBeGreaterThan(before);
    };
    return {
      stop,
      stopped: ended,
      stopOne: async () => {
        await expect.poll(() => [...statuses.values()], { timeout: 30_000, interval: 5 }).toContain("running");
        await ended();
      },
      started: () => started,
      end: () => session.detach(),
    };
  }

  /** Stops the extension's worker as the browser does. */
  async killWorker(page: Page): Promise<void> {
    const session = await this.cdp(page);
    await session.send("ServiceWorker.enable");
    await session.send("ServiceWorker.stopAllWorkers");
    await session.detach();
  }
}
