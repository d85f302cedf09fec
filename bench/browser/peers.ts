/** The two peers, each with a Chromium that it starts itself, as their users have them. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chromiumArgs } from "./chromium.js";
import { type Client, type Peers, textOf } from "./mcp.js";
import type { Subject, Tab } from "./subject.js";

abstract class Peer implements Subject {
  abstract readonly name: string;
  #client: Client | undefined;

  protected abstract connect(): Promise<Client>;

  async start(): Promise<void> {
    this.#client = await this.connect();
    // The browser starts with the first call.
    await this.list();
  }

  protected call(name: string, args: Record<string, unknown>): Promise<unknown> {
    if (this.#client === undefined) {
      throw new Error(`${this.name} was not started`);
    }
    return this.#client.callTool({ name, arguments: args });
  }

  async prepare(url: string): Promise<void> {
    textOf(await this.open(url));
  }

  abstract list(): Promise<unknown>;
  abstract read(answer: unknown): Tab[];
  abstract open(url: string): Promise<unknown>;
  abstract activate(tab: Tab): Promise<unknown>;
  abstract close(tab: Tab): Promise<unknown>;

  async truth(): Promise<Tab[]> {
    return this.read(await this.list());
  }

  async stop(): Promise<void> {
    await this.#client?.close();
  }
}

export class DevTools extends Peer {
  readonly name: string;

  constructor(
    private readonly peers: Peers,
    private readonly chromium: string,
    private readonly folder: string,
  ) {
    super();
    this.name = `chrome-devtools-mcp ${peers.program("chrome-devtools-mcp").version}`;
  }

  protected connect(): Promise<Client> {
    const { path } = this.peers.program("chrome-devtools-mcp");
    const flags = ["--headless", "--isolated", "--no-usage-statistics", "--executablePath", this.chromium];
    const args = [path, ...flags, ...chromiumArgs.map((each) => `--chromeArg=${each}`)];
    return this.peers.connect(args, this.folder);
  }

  list(): Promise<unknown> {
    return this.call("list_pages", {});
  }

  /** Lines like "3: Title (address) [selected]"; without a title there is only the address. */
  read(answer: unknown): Tab[] {
    return textOf(answer)
      .split("\n")
      .flatMap((line) => {
        const found = /^(\d+): (.*?)( \[selected\])?$/.exec(line);
        if (found === null) {
          return [];
        }
        const [, id = "", text = "", active] = found;
        return [{ id, url: /\(([^()]*)\)$/.exec(text)?.[1] ?? text, active: active !== undefined }];
      });
  }

  open(url: string): Promise<unknown> {
    return this.call("new_page", { url });
  }

  activate({ id }: Tab): Promise<unknown> {
    return this.call("select_page", { pageId: Number(id), bringToFront: true });
  }

  close({ id }: Tab): Promise<unknown> {
    return this.call("close_page", { pageId: Number(id) });
  }
}

export class Playwright extends Peer {
  readonly name: string;

  constructor(
    private readonly peers: Peers,
    private readonly chromium: string,
    private readonly folder: string,
  ) {
    super();
    this.name = `@playwright/mcp ${peers.program("@playwright/mcp").version}`;
  }

  protected async connect(): Promise<Client> {
    const launchOptions = {
      headless: true,
      executablePath: this.chromium,
      chromiumSandbox: process.getuid?.() !== 0,
      args: chromiumArgs.filter((each) => each !== "--no-sandbox"),
    };
    const config = join(this.folder, "playwright-mcp.json");
    await writeFile(config, JSON.stringify({ browser: { isolated: true, launchOptions } }));
    return this.peers.connect([this.peers.program("@playwright/mcp").path, "--config", config], this.folder);
  }

  list(): Promise<unknown> {
    return this.call("browser_tabs", { action: "list" });
  }

  /** Lines like "- 3: (current) [Title](address)". A tab's name is its place. */
  read(answer: unknown): Tab[] {
    const [first = ""] = textOf(answer).split(/\n### (?!Result)/);
    return first.split("\n").flatMap((line) => {
      const found = /^- (\d+): (\(current\) )?\[.*\]\((.*)\)$/.exec(line);
      return found === null ? [] : [{ id: found[1] ?? "", url: found[3] ?? "", active: found[2] !== undefined }];
    });
  }

  open(url: string): Promise<unknown> {
    return this.call("browser_tabs", { action: "new", url });
  }

  activate({ id }: Tab): Promise<unknown> {
    return this.call("browser_tabs", { action: "select", index: Number(id) });
  }

  close({ id }: Tab): Promise<unknown> {
    return this.call("browser_tabs", { action: "close", index: Number(id) });
  }
}
