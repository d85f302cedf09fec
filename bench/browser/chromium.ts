/** A Chromium with the extension and nothing attached to its tabs but one page of the extension. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";

/** The same for every subject, as far as they can be told. */
export const chromiumArgs: readonly string[] = [
  ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-quic",
];

interface Reply {
  readonly id?: number;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

export class Chromium {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #next = 1;
  #session = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
    let pending = "";
    (child.stdio[4] as Readable).setEncoding("utf8").on("data", (chunk: string) => {
      const messages = (pending + chunk).split("\0");
      pending = messages.pop() ?? "";
      for (const message of messages) {
        const reply = JSON.parse(message) as Reply;
        if (reply.id !== undefined) {
          this.#waiting.get(reply.id)?.(reply);
          this.#waiting.delete(reply.id);
        }
      }
    });
  }

  /** Starts it with a folder for the profile, and opens a page of the extension. */
  static async start(program: string, profile: string, extension: string, page: string): Promise<Chromium> {
    const args = [
      "--headless=new",
      ...chromiumArgs,
      `--user-data-dir=${profile}`,
      `--disable-extensions-except=${extension}`,
      `--load-extension=${extension}`,
      "--remote-debugging-pipe",
      "about:blank",
    ];
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    const chromium = new Chromium(child);
    // The tab that it starts with becomes the page of the extension.
    const { targetInfos } = await chromium.#send("Target.getTargets", {});
    const [first] = (targetInfos as { targetId: string; type: string }[]).filter(({ type }) => type === "page");
    const { sessionId } = await chromium.#send("Target.attachToTarget", { targetId: first?.targetId, flatten: true });
    chromium.#session = sessionId as string;
    await chromium.#send("Page.navigate", { url: page });
    return chromium;
  }

  async #send(method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> {
    const id = this.#next++;
    const session = this.#session === "" ? {} : { sessionId: this.#session };
    const reply = new Promise<Reply>((resolve) => this.#waiting.set(id, resolve));
    (this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, ...session })}\0`);
    const { result, error } = await reply;
    if (error !== undefined) {
      throw new Error(`${method}: ${error.message}`);
    }
    return result ?? {};
  }

  /** Runs an expression in the page of the extension and waits for what it promises. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.#send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
      userGesture: true,
    });
    if (exceptionDetails !== undefined) {
      throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    }
    return (result as { value: T }).value;
  }

  async stop(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.kill();
    await gone;
  }
}
