/**
 * Throwbar as a program uses it: one command per call of the API, over the network, to the server as it is without any
 * flag but its address and folder, with its durable store, and the extension in a Chromium to which no driver is attached.
 */
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { BrowserService, type ListTabsResponse } from "@throwbar/es/pb/browser";
import type { ActionSchema } from "@throwbar/es/pb/command";
import { CommandService } from "@throwbar/es/pb/commands";
import { DevicesService } from "@throwbar/es/pb/devices";
import { createTransport } from "@throwbar/es/transport";
import { freePort, type Running, start } from "../../clients/extension/e2e/harness/process.js";
import { Chromium } from "./chromium.js";
import { must, type Times, timed } from "./measure.js";
import type { Subject, Tab } from "./subject.js";

/** Pinned by the key in the manifest. */
const settings = "chrome-extension://illbokgpaofbmakbheaeacknengkefnn/options.html";
const patienceMs = 15_000;

type Kind = NonNullable<MessageInitShape<typeof ActionSchema>["kind"]>;

interface Api {
  readonly browser: Client<typeof BrowserService>;
  readonly commands: Client<typeof CommandService>;
  readonly devices: Client<typeof DevicesService>;
}

interface Parts {
  readonly server: Running;
  readonly chromium: Chromium;
  readonly api: Api;
  readonly deviceId: string;
}

export interface Programs {
  readonly throwbar: string;
  readonly chromium: string;
  /** Folder of the built extension. */
  readonly extension: string;
  /** Where it may write. */
  readonly folder: string;
}

const native = (id: string) => Number(id.slice(id.lastIndexOf("-") + 1));

export class Throwbar implements Subject {
  readonly name = "Throwbar";
  readonly #programs: Programs;
  #folder = "";
  #parts: Parts | undefined;
  #opened = "";

  constructor(programs: Programs) {
    this.#programs = programs;
  }

  get #running(): Parts {
    must(this.#parts !== undefined, () => "Throwbar was not started");
    return this.#parts;
  }

  async start(): Promise<void> {
    this.#folder = await mkdtemp(join(this.#programs.folder, "throwbar-"));
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const data = join(this.#folder, "data");
    const args = ["serve", "--listen", `127.0.0.1:${port}`, "--data-dir", data];
    const server = await start(this.#programs.throwbar, args, {}, /listens on/);
    const token = (await readFile(join(data, "owner.token"), "utf8")).trim();
    const transport = createTransport({ baseUrl: url, token: () => token });
    const api = {
      browser: createClient(BrowserService, transport),
      commands: createClient(CommandService, transport),
      devices: createClient(DevicesService, transport),
    };
    const extension = await this.#extensionFor(url);
    const chromium = await Chromium.start(this.#programs.chromium, join(this.#folder, "profile"), extension, settings);
    await pair(chromium, api, url);
    const { devices } = await api.devices.listDevices({ onlineOnly: true });
    this.#parts = { server, chromium, api, deviceId: devices[0]?.deviceId ?? "" };
    await this.#inStep();
  }

  /** The manifest names the server's usual port, and nobody is there to answer the browser's question for another. */
  async #extensionFor(server: string): Promise<string> {
    const extension = join(this.#folder, "extension");
    await cp(this.#programs.extension, extension, { recursive: true });
    const path = join(extension, "manifest.json");
    const manifest = JSON.parse(await readFile(path, "utf8")) as { host_permissions: string[] };
    manifest.host_permissions.push(`${server}/*`);
    await writeFile(path, JSON.stringify(manifest));
    return extension;
  }

  async prepare(url: string): Promise<void> {
    await this.#running.chromium.evaluate(`chrome.tabs.create({ url: ${JSON.stringify(url)} }).then(() => true)`);
    await this.#allLoaded();
    await this.#inStep();
  }

  list(): Promise<unknown> {
    const { api, deviceId } = this.#running;
    return api.browser.listTabs({ deviceId, pageSize: 1000 });
  }

  read(answer: unknown): Tab[] {
    return (answer as ListTabsResponse).tabs.map(({ tabId: id, url, active }) => ({ id, url, active }));
  }

  async #run(kind: Kind): Promise<Record<string, unknown>> {
    const { api, deviceId } = this.#running;
    const { outcomes } = await api.commands.dispatch({ deviceIds: [deviceId], action: { kind } });
    const outcome = outcomes[0]?.outcome;
    must(outcome?.case === "result", () => `${kind.case}: ${JSON.stringify(outcome?.value)}`);
    return (outcome.value.kind.value ?? {}) as Record<string, unknown>;
  }

  async open(url: string): Promise<unknown> {
    const result = await this.#run({ case: "openTab", value: { url } });
    this.#opened = String(result.tabId);
    return result;
  }

  async loaded(): Promise<void> {
    await this.#running.chromium.evaluate(`new Promise((resolve) => {
      const id = ${native(this.#opened)};
      const look = (tab) => tab.status === "complete" && resolve(true);
      chrome.tabs.onUpdated.addListener((changed, _change, tab) => changed === id && look(tab));
      chrome.tabs.get(id).then(look);
    })`);
  }

  activate({ id }: Tab): Promise<unknown> {
    return this.#run({ case: "activateTab", value: { tabId: id } });
  }

  close({ id }: Tab): Promise<unknown> {
    return this.#run({ case: "closeTabs", value: { tabIds: [id] } });
  }

  /** The browser's own word, from a page of the extension, under the names that the server gives. */
  async truth(): Promise<Tab[]> {
    const known = new Map(this.read(await this.list()).map(({ id }) => [native(id), id]));
    return (await this.#real()).map(({ id, ...tab }) => ({ id: known.get(id) ?? `unknown ${id}`, ...tab }));
  }

  #real(): Promise<{ id: number; url: string; active: boolean }[]> {
    return this.#running.chromium.evaluate(
      `chrome.tabs.query({}).then((tabs) => tabs.map(({ id, url, active }) => ({ id, url, active })))`,
    );
  }

  async #allLoaded(): Promise<void> {
    await until(() =>
      this.#running.chromium.evaluate(
        `chrome.tabs.query({}).then((tabs) => tabs.every(({ status }) => status === "complete"))`,
      ),
    );
  }

  /** Waits until the server's tabs are the browser's. */
  async #inStep(): Promise<void> {
    await until(async () => JSON.stringify(this.read(await this.list())) === JSON.stringify(await this.truth()));
  }

  /** The same four things as calls of the browser's API in a page of the extension: what no way over an extension can be faster than. */
  async floor(rounds: number, urls: () => string): Promise<Record<"list" | "activate" | "open" | "close", Times>> {
    const { chromium } = this.#running;
    const times = { list: [] as Times, activate: [] as Times, open: [] as Times, close: [] as Times };
    const ids = (await this.#real()).map(({ id }) => id);
    for (let round = 0; round < rounds; round++) {
      await timed(times.list, () => chromium.evaluate("chrome.tabs.query({})"));
      const id = ids[(round * 7) % ids.length];
      await timed(times.activate, () => chromium.evaluate(`chrome.tabs.update(${id}, { active: true })`));
      const url = JSON.stringify(urls());
      const made = await timed(times.open, () =>
        chromium.evaluate<{ id: number }>(`chrome.tabs.create({ url: ${url} })`),
      );
      await this.#allLoaded();
      await timed(times.close, () => chromium.evaluate(`chrome.tabs.remove(${made.id})`));
    }
    await this.#inStep();
    return times;
  }

  async stop(): Promise<void> {
    await this.#parts?.chromium.stop();
    await this.#parts?.server.stop();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** Pairs on the settings page as a person does. */
async function pair(chromium: Chromium, api: Api, server: string): Promise<void> {
  await until(() => chromium.evaluate(`document.querySelector("#pair-button") !== null`));
  const { code } = await api.devices.createPairingCode({});
  await chromium.evaluate(`(() => {
    for (const [name, value] of Object.entries(${JSON.stringify({ server, code, name: "bench" })})) {
      document.querySelector("#" + name).value = value;
    }
    document.querySelector("#pair-button").click();
  })()`);
  await until(() => chromium.evaluate(`document.querySelector("#state")?.dataset.state === "online"`));
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + patienceMs;
  while (!(await holds())) {
    must(performance.now() < end, () => "it did not come to rest in time");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
