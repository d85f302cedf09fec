/** What the panel does: it sends, follows, stops, and comes back to a conversation that goes on without it. */
import { Code, ConnectError } from "@connectrpc/connect";
import { callText } from "@throwbar/es/errors";
import type { LinkStatus } from "../bridge/messages.js";
import type { Agent, Conversation, Model } from "./agent.js";
import { emptyThread, type Thread, withEvent, withMessage, withoutUnsent } from "./thread.js";
import { alone, type Together } from "./together.js";

export interface ChatState {
  readonly thread: Thread;
  readonly model: Model | undefined;
  /** What keeps the panel from talking to the agent; empty if nothing does. */
  readonly problem: string;
  /** Whether the problem is the token: only another one helps. */
  readonly refused: boolean;
  /** Whether the conversation is being read. */
  readonly loading: boolean;
  readonly link: LinkStatus | undefined;
  /** Whether the settings have what the chat needs. */
  readonly ready: "ready" | "unpaired" | "tokenless";
  /** Undefined before the first answer. */
  readonly conversations: readonly Conversation[] | undefined;
  /** Goes up when another conversation is shown, or a message is taken back. */
  readonly view: number;
}

/** What was typed and not sent, by conversation; the empty id is that of the one that has not begun. */
export type Drafts = Readonly<Record<string, string>>;

export interface ChatParts {
  /** Undefined while the settings lack something. */
  readonly agent: Agent | undefined;
  readonly ready: ChatState["ready"];
  readonly link: LinkStatus | undefined;
  readonly conversation: string;
  readonly keepConversation: (id: string) => Promise<void>;
  readonly drafts?: Drafts;
  readonly keepDrafts?: (drafts: Drafts) => void;
  readonly together?: Together;
}

const lookEveryMs = 1000;
const listEveryMs = 10_000;
const retryStepMs = 1000;
const retryMostMs = 10_000;
/** Streams of turns that all panels of a profile hold at most: a browser has six connections to a server. */
const maxStreams = 2;
const maxDrafts = 50;

/** Whether the server does not accept the token. */
function isRefusal(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  return code === Code.Unauthenticated || code === Code.PermissionDenied;
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export class Chat {
  readonly #parts: ChatParts;
  readonly #together: Together;
  readonly #listeners = new Set<() => void>();
  #state: ChatState;
  #drafts: Drafts;
  #following: AbortController | undefined;
  /** When the shown conversation had last changed, as far as this panel has read it. */
  #readUntil = 0;
  /** The problem that the list of conversations had; it goes when the list has none. */
  #listProblem = "";
  #retry: (() => void) | undefined;

  constructor(parts: ChatParts) {
    this.#parts = parts;
    this.#together = parts.together ?? alone;
    this.#drafts = parts.drafts ?? {};
    this.#state = {
      thread: emptyThread,
      model: undefined,
      problem: "",
      refused: false,
      loading: false,
      link: parts.link,
      ready: parts.ready,
      conversations: undefined,
      view: 0,
    };
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
        this.#set({ problem: callText(error), refused: isRefusal(error), loading: false });
        if (isRefusal(error)) {
          return; // another token is another panel
        }
        const asked = new Promise<void>((resolve) => {
          this.#retry = resolve;
        });
        await Promise.race([pause(Math.min(attempt * retryStepMs, retryMostMs)), asked]);
        this.#retry = undefined;
      }
    }
  }

  /** Tries again now what waits for its next attempt. */
  retry(): void {
    this.#retry?.();
    void this.refresh();
  }

  async #load(agent: Agent): Promise<void> {
    const { conversation } = this.#parts;
    this.#set({ model: await agent.model(), problem: "" });
    await this.refresh();
    if (conversation !== "" && this.#state.thread === emptyThread) {
      await this.#catchUp(agent, conversation, this.#follow());
    }
  }

  /** Keeps the list of conversations in step, and with it the shown one where somebody else goes on with it, until the signal. */
  async watch(signal: AbortSignal, visible: () => boolean): Promise<void> {
    while (!signal.aborted) {
      await pause(listEveryMs);
      if (visible() && !signal.aborted) {
        await this.refresh();
      }
    }
  }

  async refresh(): Promise<void> {
    const { agent } = this.#parts;
    if (agent === undefined) {
      return;
    }
    try {
      this.#set({ conversations: await agent.conversations() });
      if (this.#state.problem === this.#listProblem) {
        this.#set({ problem: "", refused: false });
      }
      this.#listProblem = "";
      await this.#comeToDate(agent);
    } catch (error) {
      this.#listProblem = callText(error);
      if (this.#state.problem === "") {
        this.#set({ problem: this.#listProblem, refused: isRefusal(error) });
      }
    }
  }

  /** Reads what has happened in the shown conversation without this panel. */
  async #comeToDate(agent: Agent): Promise<void> {
    const { thread, conversations, loading } = this.#state;
    const row = conversations?.find(({ id }) => id === thread.conversationId);
    if (row === undefined || thread.running || loading || row.updatedAt <= this.#readUntil) {
      return;
    }
    this.#readUntil = row.updatedAt;
    const stop = this.#follow();
    const events = await agent.events(row.id, thread.sequence);
    if (!stop.aborted) {
      this.#take(events);
      void this.#waitForEnd(agent, stop).catch(() => {});
    }
  }

  /** A conversation that the server does not have any more is left. */
  async #catchUp(agent: Agent, conversationId: string, stop: AbortSignal): Promise<void> {
    // What the list says was before what is read now: what happens between is read again, not missed.
    this.#readUntil = this.#state.conversations?.find(({ id }) => id === conversationId)?.updatedAt ?? 0;
    this.#set({ loading: true, thread: { ...emptyThread, conversationId } });
    try {
      const events = await agent.events(conversationId, 0n);
      if (stop.aborted) {
        return;
      }
      this.#take(events);
    } catch (error) {
      if (stop.aborted) {
        return;
      }
      if (ConnectError.from(error).code === Code.NotFound) {
        await this.begin();
        return;
      }
      this.#set({ thread: emptyThread });
      throw error;
    }
    this.#set({ loading: false, thread: { ...this.#state.thread, conversationId } });
    await this.#waitForEnd(agent, stop);
  }

  #take(events: readonly Parameters<typeof withEvent>[1][]): void {
    const thread = events.reduce(withEvent, this.#state.thread);
    if (thread !== this.#state.thread) {
      this.#set({ thread });
    }
  }

  /** Reads on where a turn runs that this panel has no stream of. */
  async #waitForEnd(agent: Agent, stop: AbortSignal): Promise<void> {
    while (this.#state.thread.running && !stop.aborted) {
      await pause(lookEveryMs);
      if (!stop.aborted) {
        const { conversationId, sequence } = this.#state.thread;
        const events = await agent.events(conversationId, sequence);
        if (!stop.aborted) {
          this.#take(events);
        }
      }
    }
  }

  #follow(): AbortSignal {
    this.#following?.abort();
    this.#following = new AbortController();
    return this.#following.signal;
  }

  /** Sends a message. While a turn runs nothing is sent: false. */
  async send(text: string): Promise<boolean> {
    const { agent } = this.#parts;
    const message = text.trim();
    if (agent === undefined || message === "" || this.#state.thread.running) {
      return false;
    }
    const stop = this.#follow();
    const { sequence } = this.#state.thread;
    this.#set({ thread: withMessage(withoutUnsent(this.#state.thread), message), problem: "" });
    const free = await this.#together.slot("turn", maxStreams);
    try {
      await this.#turn(agent, message, stop, free !== undefined);
    } catch (error) {
      free?.();
      await this.#lost(agent, error, stop, sequence);
    } finally {
      free?.();
    }
    void this.refresh();
    return true;
  }

  /** Follows a turn: by its stream, or where there are too many of those by what is stored. */
  async #turn(agent: Agent, message: string, stop: AbortSignal, streamed: boolean): Promise<void> {
    const leave = new AbortController();
    const signal = AbortSignal.any([stop, leave.signal]);
    for await (const event of agent.chat(this.#state.thread.conversationId, message, signal)) {
      if (stop.aborted) {
        return;
      }
      await this.#keep(event.conversationId);
      this.#take([event]);
      if (!streamed) {
        break; // it has begun, and goes on by itself
      }
    }
    leave.abort();
    await this.#waitForEnd(agent, stop);
  }

  async #keep(conversationId: string): Promise<void> {
    if (conversationId !== "" && conversationId !== this.#state.thread.conversationId) {
      this.#readUntil = 0;
      await this.#parts.keepConversation(conversationId);
      void this.refresh();
    }
  }

  /** The stream is gone, which need not mean that the turn is. Before is the last event from before the message. */
  async #lost(agent: Agent, error: unknown, stop: AbortSignal, before: bigint): Promise<void> {
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
      const { thread } = this.#state;
      const unsent = thread.lines.some((line) => line.kind === "person" && !line.sent);
      if (unsent && thread.sequence === before) {
        this.#set({ thread: { ...thread, running: false } }); // it has not come to a turn
      }
      await this.#waitForEnd(agent, stop);
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

  /** Shows another conversation. A turn that runs in the one before goes on. */
  async show(conversationId: string): Promise<void> {
    const { agent } = this.#parts;
    if (agent === undefined || conversationId === this.#state.thread.conversationId) {
      return;
    }
    const stop = this.#follow();
    this.#set({ problem: "", view: this.#state.view + 1, thread: { ...emptyThread, conversationId } });
    try {
      await this.#parts.keepConversation(conversationId);
      await this.#catchUp(agent, conversationId, stop);
    } catch (error) {
      if (!stop.aborted) {
        this.#set({ problem: callText(error), loading: false });
      }
    }
  }

  /** Leaves the conversation for a new one. A turn that runs in it goes on. */
  async begin(): Promise<void> {
    this.#follow();
    this.#set({ thread: emptyThread, problem: "", loading: false, view: this.#state.view + 1 });
    await this.#parts.keepConversation("");
  }

  /** What was typed in the shown conversation and not sent. */
  draft(): string {
    return this.#drafts[this.#state.thread.conversationId] ?? "";
  }

  keepDraft(text: string): void {
    const { conversationId } = this.#state.thread;
    const others = Object.entries(this.#drafts).filter(([id]) => id !== conversationId);
    const kept = text === "" ? others : [...others, [conversationId, text] as const];
    this.#drafts = Object.fromEntries(kept.slice(-maxDrafts));
    this.#parts.keepDrafts?.(this.#drafts);
  }

  /** Takes a message that did not get through back into the field. */
  takeBack(): void {
    const line = this.#state.thread.lines.findLast((each) => each.kind === "person" && !each.sent);
    if (line?.kind === "person") {
      this.keepDraft(line.text);
      this.#set({ thread: withoutUnsent(this.#state.thread), view: this.#state.view + 1 });
    }
  }
}
