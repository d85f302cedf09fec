/** What a screen reader is told: sentences when they are whole, tools when they end, and at once what waits for the person. */
import { describe } from "./activity.js";
import { visible } from "./text.js";
import type { Line, Thread } from "./thread.js";
import { spoken } from "./words.js";

export interface News {
  /** Said when the reader has finished what it says. */
  readonly polite: readonly string[];
  /** Said at once. */
  readonly assertive: readonly string[];
}

const sentenceEnd = /[.!?…:](?=\s)|\n/g;

/** Follows one thread; each state is read once. */
export class Announcer {
  #conversation = "";
  /** Lines before this one are said. */
  #said = 0;
  /** How much of the line after those is said. */
  #offset = 0;
  /** Tools that have been mentioned and have not ended, by the place of their line. */
  readonly #open = new Set<number>();

  /** Whether a thread is the one that was followed, further on. */
  #goesOn(thread: Thread): boolean {
    const same = this.#conversation === "" || thread.conversationId === this.#conversation;
    return same && thread.lines.length >= this.#said;
  }

  /** What is there already when a conversation is opened is not news. */
  skip(thread: Thread): void {
    this.#conversation = thread.conversationId;
    this.#said = thread.lines.length;
    this.#offset = 0;
    this.#open.clear();
  }

  next(thread: Thread): News {
    if (!this.#goesOn(thread)) {
      this.skip(thread);
      return { polite: [], assertive: [] };
    }
    this.#conversation = thread.conversationId;
    const polite: string[] = [];
    const assertive: string[] = [];
    for (const at of [...this.#open]) {
      this.#ended(thread, at, polite);
    }
    while (this.#said < thread.lines.length) {
      const line = thread.lines[this.#said] as Line;
      if (line.kind === "agent") {
        this.#sentences(line.text, line.done, polite);
        if (!line.done && this.#said === thread.lines.length - 1) {
          break;
        }
      } else if (line.kind === "approval" && line.state === "pending") {
        assertive.push(`${spoken(line.name)} waits for your approval. ${visible(line.why)}`);
      } else if (line.kind === "tool") {
        this.#open.add(this.#said);
        this.#ended(thread, this.#said, polite);
      } else if (line.kind === "notice" || line.kind === "error") {
        polite.push(visible(line.text));
      } else if (line.kind === "other") {
        polite.push(`The agent of ${visible(line.handle)} writes: ${visible(line.text)}`);
      } else if (line.kind === "child") {
        polite.push(`An agent was started: ${visible(line.agent)}`);
      }
      this.#said++;
      this.#offset = 0;
    }
    return { polite, assertive };
  }

  /** Everything up to the last whole sentence, or all of it once the text is complete. */
  #sentences(text: string, done: boolean, polite: string[]): void {
    const fresh = text.slice(this.#offset);
    const ends = [...fresh.matchAll(sentenceEnd)];
    const last = ends.at(-1);
    const upTo = done ? fresh.length : last === undefined ? 0 : last.index + last[0].length;
    const said = visible(fresh.slice(0, upTo)).trim();
    if (said !== "") {
      polite.push(said);
    }
    this.#offset += upTo;
  }

  #ended(thread: Thread, at: number, polite: string[]): void {
    const line = thread.lines[at];
    if (line?.kind !== "tool" || line.outcome === "running" || line.outcome === "waiting") {
      return;
    }
    this.#open.delete(at);
    const { title, device, facts, problems } = describe(line.name, line.arguments, line.content, thread.known);
    const what = [
      device === "" ? title : `${title} on ${visible(device)}`,
      ...facts,
      ...problems.map((each) => each.title),
    ];
    polite.push(`${what.join(", ")}: ${line.outcome}`);
  }
}
