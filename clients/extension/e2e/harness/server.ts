/** The real server, and its API as a program uses it. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { BrowserService } from "@throwbar/es/pb/browser";
import { CommandService } from "@throwbar/es/pb/commands";
import { DevicesService, TokenService } from "@throwbar/es/pb/devices";
import { createTransport } from "@throwbar/es/transport";
import { inject } from "vitest";
import { freePort, type Running, start } from "./process.js";

export interface Api {
  readonly devices: Client<typeof DevicesService>;
  readonly tokens: Client<typeof TokenService>;
  readonly commands: Client<typeof CommandService>;
  readonly browser: Client<typeof BrowserService>;
}

export class Server {
  readonly port: number;
  readonly url: string;
  readonly #folder: string;
  readonly #env: Record<string, string>;
  readonly #args: readonly string[];
  #process: Running | undefined;

  private constructor(port: number, folder: string, env: Record<string, string>, args: readonly string[]) {
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.#folder = folder;
    this.#env = env;
    this.#args = args;
  }

  static async start(env: Record<string, string> = {}, ...args: string[]): Promise<Server> {
    const server = new Server(await freePort(), await mkdtemp(join(tmpdir(), "throwbar-data-")), env, args);
    await server.up();
    return server;
  }

  /** Starts it, unless it runs. */
  async up(): Promise<void> {
    if (this.#process?.runs() === true) {
      return;
    }
    const args = ["serve", "--listen", `127.0.0.1:${this.port}`, "--data-dir", this.#folder, ...this.#args];
    this.#process = await start(inject("server"), args, this.#env, /listens on/);
  }

  async down(signal?: NodeJS.Signals): Promise<void> {
    await this.#process?.stop(signal);
  }

  async remove(): Promise<void> {
    await this.down();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  output(): string {
    return this.#process?.output() ?? "";
  }

  /** Runs a verb of the command line against this server, as a person at a terminal would. */
  cli(...args: string[]): Promise<{ code: number; out: string; errors: string }> {
    const env = {
      ...process.env,
      THROWBAR_SERVER: this.url,
      THROWBAR_TOKEN_FILE: join(this.#folder, "owner.token"),
      XDG_CACHE_HOME: this.#folder,
    };
    return new Promise((resolve) => {
      execFile(inject("server"), args, { env }, (error, out, errors) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
        resolve({ code, out, errors });
      });
    });
  }

  /** The token that the server has made for its owner. */
  async ownerToken(): Promise<string> {
    return (await readFile(join(this.#folder, "owner.token"), "utf8")).trim();
  }

  /** The metrics of one name, by their labels; empty where there are none. */
  async metrics(name: string): Promise<Map<string, number>> {
    const answer = await fetch(`${this.url}/metrics`, {
      headers: { Authorization: `Bearer ${await this.ownerToken()}` },
    });
    if (!answer.ok) {
      throw new Error(`the metrics: ${answer.status}`);
    }
    const found = new Map<string, number>();
    for (const line of (await answer.text()).split("\n")) {
      const parts = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
      if (parts?.[1] === name) {
        found.set(parts[2] ?? "", Number(parts[3]));
      }
    }
    return found;
  }

  async api(): Promise<Api> {
    const token = await this.ownerToken();
    const transport = createTransport({ baseUrl: this.url, token: () => token });
    return {
      devices: createClient(DevicesService, transport),
      tokens: createClient(TokenService, transport),
      commands: createClient(CommandService, transport),
      browser: createClient(BrowserService, transport),
    };
  }
}
