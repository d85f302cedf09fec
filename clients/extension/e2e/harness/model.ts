/** The scripted model server, as a process of its own. */
import { inject } from "vitest";
import { type Running, start } from "./process.js";

/** One answer of the model. */
export interface Reply {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
  /** Characters in a piece of the stream, and the pause before each, for eyes. */
  readonly piece?: number;
  readonly pace_millis?: number;
}

export class Model {
  readonly url: string;
  readonly #process: Running;

  private constructor(url: string, process: Running) {
    this.url = url;
    this.#process = process;
  }

  static async start(): Promise<Model> {
    const process = await start(inject("model"), [], {}, /listens on \S+\n/);
    const url = /listens on (\S+)/.exec(process.output())?.[1] ?? "";
    return new Model(url, process);
  }

  /** What makes the server use it. */
  get env(): Record<string, string> {
    return { THROWBAR_MODEL: "scripted", THROWBAR_MODEL_BASE_URL: `${this.url}/v1`, OPENAI_API_KEY: "" };
  }

  /** What the model does, step by step, after a message that matches. */
  async script(...rules: readonly { readonly match: string; readonly replies: readonly Reply[] }[]): Promise<void> {
    const answer = await fetch(`${this.url}/control/rules`, { method: "POST", body: JSON.stringify(rules) });
    if (!answer.ok) {
      throw new Error(await answer.text());
    }
  }

  /** What a strict provider would have refused. */
  async violations(): Promise<unknown[]> {
    return (await (await fetch(`${this.url}/control/violations`)).json()) as unknown[];
  }

  stop(): Promise<void> {
    return this.#process.stop();
  }
}
