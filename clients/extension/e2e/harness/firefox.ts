/** A real Firefox with the extension, driven over its own remote protocol (Marionette). */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, type Running, start } from "./process.js";

type Reply = [1, number, { error: string; message: string } | null, unknown];

/** The protocol: each message is its length in bytes, a colon, and JSON. */
class Marionette {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #pending = Buffer.alloc(0);
  #next = 1;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      for (const { reject } of this.#waiting.values()) {
        reject(new Error("Firefox is gone"));
      }
    });
  }

  #take(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    for (let colon = this.#pending.indexOf(":"); colon >= 0; colon = this.#pending.indexOf(":")) {
      const end = colon + 1 + Number(this.#pending.subarray(0, colon).toString());
      if (this.#pending.length < end) {
        return;
      }
      const message = JSON.parse(this.#pending.subarray(colon + 1, end).toString()) as unknown;
      this.#pending = this.#pending.subarray(end);
      if (Array.isArray(message)) {
        this.#answer(message as unknown as Reply);
      }
    }
  }

  #answer([, id, error, result]: Reply): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === null) {
      waiting?.resolve(result);
    } else {
      waiting?.reject(new Error(`${error.error}: ${error.message}`));
    }
  }

  send(name: string, parameters: Record<string, unknown> = {}): Promise<unknown> {
    const id = this.#next++;
    const text = JSON.stringify([0, id, name, parameters]);
    const reply = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#socket.write(`${Buffer.byteLength(text)}:${text}`);
    return reply;
  }

  close(): void {
    this.#socket.destroy();
  }
}

export const addonId = "extension@throwbar.dev";

export class Firefox {
  readonly #folder: string;
  readonly #extension: string;
  #process: Running | undefined;
  #driver: Marionette | undefined;

  private constructor(folder: string, extension: string) {
    this.#folder = folder;
    this.#extension = extension;
  }

  /** Starts Firefox with a new profile and the extension in a folder. */
  static async start(program: string, extension: string, preferences: Record<string, unknown> = {}): Promise<Firefox> {
    const firefox = new Firefox(await mkdtemp(join(tmpdir(), "throwbar-firefox-")), extension);
    await firefox.#up(program, preferences);
    return firefox;
  }

  async #up(program: string, preferences: Record<string, unknown>): Promise<void> {
    const port = await freePort();
    const all = {
      "marionette.port": port,
      "browser.shell.checkDefaultBrowser": false,
      "browser.startup.page": 0,
      "datareporting.policy.dataSubmissionEnabled": false,
      "app.update.auto": false,
      // A driven Firefox lets pages ask nothing when they are left; a person's does.
      "dom.disable_beforeunload": false,
      ...preferences,
    };
    const lines = Object.entries(all).map(
      ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
    );
    await writeFile(join(this.#folder, "user.js"), lines.join("\n"));
    const args = [
      "--headless",
      "--marionette",
      "--remote-debugging-port",
      "0",
      "--remote-allow-system-access",
      "--no-remote",
      "--profile",
      this.#folder,
    ];
    this.#process = await start(program, args, {}, /Marionette.*Listening on port/);
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    this.#driver = new Marionette(socket);
    // In a session without a WebSocket Firefox answers every page's question by itself: leave.
    await this.#send("WebDriver:NewSession", {
      webSocketUrl: true,
      unhandledPromptBehavior: { default: "ignore", beforeUnload: "ignore" },
    });
    await this.#send("Addon:Install", { path: this.#extension, temporary: true });
  }

  output(): string {
    return this.#process?.output() ?? "";
  }

  #send(name: string, parameters?: Record<string, unknown>): Promise<unknown> {
    if (this.#driver === undefined) {
      throw new Error("Firefox does not run");
    }
    return this.#driver.send(name, parameters);
  }

  async #run<T>(context: "chrome" | "content", script: string, args: readonly unknown[]): Promise<T> {
    await this.#send("Marionette:SetContext", { value: context });
    const wrapped = `const [done, ...args] = [arguments[arguments.length - 1], ...arguments];
      (async () => { ${script} })().then((value) => done({ value: value ?? null }), (error) => done({ error: String(error) }));`;
    const { value } = (await this.#send("WebDriver:ExecuteAsyncScript", {
      script: wrapped,
      args,
      newSandbox: true,
    })) as {
      value: { value?: T; error?: string };
    };
    if (value.error !== undefined) {
      throw new Error(value.error);
    }
    return value.value as T;
  }

  /** Runs a script with the browser's own rights. The last expression has to be returned; args holds the arguments. */
  inBrowser<T>(script: string, ...args: readonly unknown[]): Promise<T> {
    return this.#run("chrome", script, args);
  }

  /** Runs a script in the page that is in front. */
  inPage<T>(script: string, ...args: readonly unknown[]): Promise<T> {
    return this.#run("content", script, args);
  }

  /** Opens a page of the extension in a tab of its own. */
  async open(name: string): Promise<void> {
    const base = await this.inBrowser<string>(`return WebExtensionPolicy.getByID(args[0]).getURL("")`, addonId);
    await this.#send("Marionette:SetContext", { value: "content" });
    // The tab that was driven last may be gone.
    const [any] = (await this.#send("WebDriver:GetWindowHandles")) as string[];
    await this.#send("WebDriver:SwitchToWindow", { handle: any, focus: false });
    const { handle } = (await this.#send("WebDriver:NewWindow", { type: "tab", focus: true })) as { handle: string };
    await this.#send("WebDriver:SwitchToWindow", { handle, focus: true });
    await this.#send("WebDriver:Navigate", { url: `${base}${name}` });
  }

  async #find(selector: string): Promise<string> {
    await this.#send("Marionette:SetContext", { value: "content" });
    const { value } = (await this.#send("WebDriver:FindElement", { using: "css selector", value: selector })) as {
      value: Record<string, string>;
    };
    return Object.values(value)[0] ?? "";
  }

  async fill(selector: string, text: string): Promise<void> {
    const id = await this.#find(selector);
    await this.#send("WebDriver:ElementClear", { id });
    await this.#send("WebDriver:ElementSendKeys", { id, text });
  }

  async click(selector: string): Promise<void> {
    await this.#send("WebDriver:ElementClick", { id: await this.#find(selector) });
  }

  /** What the browser's own window manager has, whatever the extension says. */
  addresses(): Promise<string[]> {
    return this.inBrowser(`
      return [...Services.wm.getEnumerator("navigator:browser")].flatMap((window) =>
        window.gBrowser.tabs.map((tab) => tab.linkedBrowser.currentURI.spec));`);
  }

  /** The text of an element of the page that was opened last; empty if there is none. */
  text(selector: string): Promise<string> {
    return this.inPage("return document.querySelector(args[0])?.innerText ?? ''", selector);
  }

  /** The address in the tab that is in front. */
  inFront(): Promise<string> {
    return this.inBrowser(
      `return Services.wm.getMostRecentWindow("navigator:browser").gBrowser.selectedBrowser.currentURI.spec`,
    );
  }

  /** Opens a tab as a person does, without a part of the extension. */
  async openTab(url: string): Promise<void> {
    await this.inBrowser(`Services.wm.getMostRecentWindow("navigator:browser").gBrowser.addTrustedTab(args[0])`, url);
  }

  async close(url: string): Promise<void> {
    await this.inBrowser(
      `const { gBrowser } = Services.wm.getMostRecentWindow("navigator:browser");
       gBrowser.removeTab(gBrowser.tabs.find((tab) => tab.linkedBrowser.currentURI.spec === args[0]))`,
      url,
    );
  }

  async #turnTo(url: string): Promise<void> {
    await this.#send("Marionette:SetContext", { value: "content" });
    const handles = (await this.#send("WebDriver:GetWindowHandles")) as string[];
    for (const handle of handles) {
      await this.#send("WebDriver:SwitchToWindow", { handle, focus: false });
      const { value } = (await this.#send("WebDriver:GetCurrentURL")) as { value: string };
      if (value === url) {
        return;
      }
    }
    throw new Error(`no tab at ${url}`);
  }

  /** Types into a page with real key strokes: without them a page may not ask when it is left. */
  async typeInto(url: string, selector: string, text: string): Promise<void> {
    await this.#turnTo(url);
    await this.click(selector);
    await this.fill(selector, text);
  }

  /** Answers the question of the page that was typed into: leave it. As long as it stands, no script runs. */
  async leavePage(): Promise<void> {
    await this.#send("WebDriver:AcceptAlert");
  }

  /** What Firefox says against the extension. */
  complaints(): Promise<string[]> {
    return this.inBrowser(
      `const { extension } = WebExtensionPolicy.getByID(args[0]); return [...extension.errors, ...extension.warnings]`,
      addonId,
    );
  }

  /** The hosts where the extension may go without asking. */
  hosts(): Promise<string[]> {
    return this.inBrowser(
      `return WebExtensionPolicy.getByID(args[0]).allowedOrigins.patterns
         .map(({ pattern }) => pattern).filter((pattern) => !pattern.startsWith("moz-extension:"))`,
      addonId,
    );
  }

  /** Takes back the access to hosts, as a person does on the page of add-ons. */
  async refuse(...origins: string[]): Promise<void> {
    await this.inBrowser(
      `const { ExtensionPermissions } = ChromeUtils.importESModule("resource://gre/modules/ExtensionPermissions.sys.mjs");
       const { extension } = WebExtensionPolicy.getByID(args[0]);
       await ExtensionPermissions.remove(args[0], { permissions: [], origins: args[1] }, extension)`,
      addonId,
      origins,
    );
  }

  /** Opens the sidebar as a person does, and returns the address of what it shows. */
  sidebar(): Promise<string> {
    return this.inBrowser(
      `const window = Services.wm.getMostRecentWindow("navigator:browser");
       const policy = WebExtensionPolicy.getByID(args[0]);
       const [id] = [...window.SidebarController.sidebars].find(([, { extensionId }]) => extensionId === args[0]);
       await window.SidebarController.show(id);
       const deadline = Date.now() + 10_000;
       while (Date.now() < deadline) {
         const outer = window.SidebarController.browser.contentDocument?.getElementById("webext-panels-browser");
         const address = outer?.currentURI?.spec ?? "";
         if (address.startsWith("moz-extension:")) { return address; }
         await new Promise((resolve) => window.setTimeout(resolve, 50));
       }
       return "";`,
      addonId,
    );
  }

  /** "running", "stopped", "starting" or "suspending". */
  background(): Promise<string> {
    return this.inBrowser(`return WebExtensionPolicy.getByID(args[0]).extension.backgroundState`, addonId);
  }

  /**
   * Puts the event page away, as Firefox does after half a minute of silence, and returns what it is then: "stopped", or "starting"
   * where an event has come already.
   */
  suspend(): Promise<string> {
    return this.inBrowser(
      `const { extension } = WebExtensionPolicy.getByID(args[0]);
       await extension.terminateBackground();
       return extension.backgroundState`,
      addonId,
    );
  }

  async stop(): Promise<void> {
    this.#driver?.close();
    await this.#process?.stop();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}
