/** What the panel does: it sends, follows, stops, and comes back to a conversation that goes on without it. */
import { Code, ConnectError } from "@connectrpc/connect";
import { callText } from "@throwbar/es/errors";
import type { LinkStatus } from "../bridge/messages.js";
import type { Agent, Model } from "./agent.js";
import type { Approval, Approvals } from "./approvals.js";
import { emptyThread, type Thread, withEvent, withMessage } from "./thread.js";

export interface ChatState {
  readonly thread: Thread;
  readonly model: Model | undefined;
  /** What keeps the panel from talking to the agent; empty if nothing does. */
  readonly problem: string;
  readonly link: LinkStatus | undefined;
  /** Whether the settings have what the chat needs. */
  readonly ready: "ready" | "unpaired" | "tokenless";
}

export interface ChatParts {
  /** Undefined while the settings lack something. */
  readonly agent: Agent | undefined;
  /** Undefined where nothing can be decided. */
  readonly approvals?: Approvals | undefined;
  readonly ready: ChatState["ready"];
  readonly link: LinkStatus | undefined;
  readonly conversation: string;
  readonly keepConversation: (id: string) => Promise<void>;
}

const lookEveryMs = 1000;
const retryStepMs = 1000;
const retryMostMs = 10_000;

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export class Chat {
  readonly #parts: ChatParts;
  readonly #listeners = new Set<() => void>();
  #state: ChatState;
  #following: AbortController | undefined;

  constructor(parts: ChatParts) {
    this.#parts = parts;
    this.#state = { thread: emptyThread, model: undefined, problem: "", link: parts.link, ready: parts.ready };
  }

  get state(): ChatState {
    return this.#state;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #set(change: Partial<ChatState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of [...this.#listeners]) {
      listener();
    }
  }

  setLink(link: LinkStatus): void {
    this.#set({ link });
  }

  /** Asks for the model, and shows the conversation that the panel was left with; again and again until there is an answer. */
  async open(): Promise<void> {
    const { agent } = this.#parts;
    for (let attempt = 1; agent !== undefined; attempt++) {
      try {
        await this.#load(agent);
        return;
      } catch (error) {
        this.#set({ problem: callText(error) });
        const { code } = ConnectError.from(error);
        if (code === Code.Unauthenticated || code === Code.PermissionDenied) {
          return; // another token is another panel
        }
        await pause(Math.min(attempt * retryStepMs, retryMostMs));
      }
    }
  }

  async #load(agent: Agent): Promise<void> {
    this.#set({ model: await agent.model(), problem: "" });
    if (this.#parts.conversation !== "" && this.#state.thread === emptyThread) {
      await this.#catchUp(agent, this.#parts.conversation);
    }
  }

  /** A conversation that the server does not have any more is left. */
  async #catchUp(agent: Agent, conversationId: string): Promise<void> {
    try {
      this.#take(await agent.events(conversationId, 0n));
    } catch (error) {
      if (ConnectError.from(error).code === Code.NotFound) {
        await this.begin();
        return;
      }
      throw error;
    }
    this.#set({ thread: { ...this.#state.thread, conversationId } });
    await this.#waitForEnd(agent);
  }

  #take(events: Parameters<typeof withEvent>[1][]): void {
    this.#set({ thread: events.reduce(withEvent, this.#state.thread) });
  }

  /** Reads on where a turn runs that this panel has no stream of. */
  async #waitForEnd(agent: Agent): Promise<void> {
    const stop = this.#follow();
    void this.#parts.approvals?.follow(this.#whileRunning(stop));
    while (this.#state.thread.running && !stop.aborted) {
      await pause(lookEveryMs);
      if (!stop.aborted) {
        this.#take(await agent.events(this.#state.thread.conversationId, this.#state.thread.sequence));
      }
    }
  }

  /** A signal for the end of the turn that runs, or of the panel's interest in it. */
  #whileRunning(stop: AbortSignal): AbortSignal {
    const ended = new AbortController();
    const leave = this.subscribe(() => {
      if (!this.#state.thread.running) {
        leave();
        ended.abort();
      }
    });
    return AbortSignal.any([stop, ended.signal]);
  }

  /** What is asked, to be shown before it is decided; undefined where it cannot be read here. */
  async approval(approvalId: string): Promise<Approval | undefined> {
    try {
      return await this.#parts.approvals?.get(approvalId);
    } catch {
      return undefined;
    }
  }

  /** Decides what was shown. Returns why it did not count; empty if it did. */
  async decide(approval: Approval, yes: boolean, reason: string): Promise<string> {
    try {
      return (await this.#parts.approvals?.decide(approval, yes, reason)) ?? "";
    } catch (error) {
      return callText(error);
    }
  }

  #follow(): AbortSignal {
    this.#following?.abort();
    this.#following = new AbortController();
    return this.#following.signal;
  }

  async send(text: string): Promise<void> {
    const { agent } = this.#parts;
    const message = text.trim();
    if (agent === undefined || message === "") {
      return;
    }
    const stop = this.#follow();
    this.#set({ thread: withMessage(this.#state.thread, message), problem: "" });
    void this.#parts.approvals?.follow(this.#whileRunning(stop));
    try {
      for await (const event of agent.chat(this.#state.thread.conversationId, message, stop)) {
        await this.#keep(event.conversationId);
        this.#take([event]);
      }
    } catch (error) {
      await this.#lost(agent, error, stop);
    }
  }

  async #keep(conversationId: string): Promise<void> {
    if (conversationId !== "" && conversationId !== this.#state.thread.conversationId) {
      await this.#parts.keepConversation(conversationId);
    }
  }

  /** The stream is gone, which need not mean that the turn is. */
  async #lost(agent: Agent, error: unknown, stop: AbortSignal): Promise<void> {
    if (stop.aborted) {
      return;
    }
    this.#set({ problem: callText(error) });
    if (this.#state.thread.conversationId === "") {
      this.#set({ thread: { ...this.#state.thread, running: false } });
      return;
    }
    try {
      this.#take(await agent.events(this.#state.thread.conversationId, this.#state.thread.sequence));
      await this.#waitForEnd(agent);
    } catch {
      this.#set({ thread: { ...this.#state.thread, running: false } });
    }
  }

  async stop(): Promise<void> {
    const { agent } = this.#parts;
    const { conversationId } = this.#state.thread;
    if (agent === undefined || conversationId === "") {
      return;
    }
    try {
      await agent.stop(conversationId);
    } catch (error) {
      this.#set({ problem: callText(error) });
    }
  }

  /** Leaves the conversation for a new one. A turn that runs in it goes on. */
  async begin(): Promise<void> {
    this.#follow();
    await this.#parts.keepConversation("");
    this.#set({ thread: emptyThread, problem: "" });
  }
}
