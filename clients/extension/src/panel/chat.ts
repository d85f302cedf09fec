/** What the panel does: it sends, follows, stops, and comes back to a conversation that goes on without it. */
import { Code, ConnectError } from "@connectrpc/connect";
import { callText } from "@throwbar/es/errors";
import type { Event } from "@throwbar/es/pb/agent";
import type { LinkStatus } from "../bridge/messages.js";
import { type Agent, type Conversation, type Model, type Outgoing, type Sent, statusOf } from "./agent.js";
import {
  emptyThread,
  joining,
  type Thread,
  withEvent,
  withMessage,
  withoutUnsent,
  withSent,
  withStatus,
} from "./thread.js";
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
  /** Undefined until somebody asks for them. */
  readonly archived: readonly Conversation[] | undefined;
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
  /** Makes the id of a message. */
  readonly newId?: () => string;
}

const lookEveryMs = 1000;
const listEveryMs = 10_000;
const retryStepMs = 1000;
const retryMostMs = 10_000;
/** Streams of conversations that all panels of a profile hold at most: a browser has six connections to a server. */
const maxStreams = 2;
const maxDrafts = 50;
/** The server shows again and again that a stream is alive. */
const silentMs = 45_000;
const sendTries = 3;
/** Events that are taken in together while a conversation is read. */
const batch = 500;

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
  /** The problem that following the conversation had; it goes when that works. */
  #followProblem = "";
  /** The problem that the list of conversations had; it goes when the list has none. */
  #listProblem = "";
  #retry: (() => void) | undefined;
  #again: (() => void) | undefined;

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
      archived: undefined,
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
    this.#again?.();
    void this.refresh();
  }

  async #load(agent: Agent): Promise<void> {
    const { conversation } = this.#parts;
    this.#set({ model: await agent.model(), problem: "" });
    await this.refresh();
    if (conversation !== "" && this.#state.thread === emptyThread) {
      this.#attach(agent, { ...emptyThread, conversationId: conversation });
    }
  }

  /** Keeps the list of conversations in step, until the signal. */
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
      this.#set({ conversations: await agent.conversations(false) });
      if (this.#state.archived !== undefined) {
        this.#set({ archived: await agent.conversations(true) });
      }
      if (this.#state.problem === this.#listProblem) {
        this.#set({ problem: "", refused: false });
      }
      this.#listProblem = "";
    } catch (error) {
      this.#listProblem = callText(error);
      if (this.#state.problem === "") {
        this.#set({ problem: this.#listProblem, refused: isRefusal(error) });
      }
    }
  }

  /** Shows a conversation from what a thread already has of it, and follows it until another one is shown. */
  #attach(agent: Agent, thread: Thread, loading = true): void {
    const stop = this.#leave();
    this.#set({ thread, loading });
    void this.#follow(agent, thread.conversationId, stop);
  }

  #leave(): AbortSignal {
    this.#following?.abort();
    this.#following = new AbortController();
    return this.#following.signal;
  }

  /** Follows a conversation whatever happens to the connection: what is stored comes once and in order. */
  async #follow(agent: Agent, conversationId: string, stop: AbortSignal): Promise<void> {
    let wait = lookEveryMs;
    const works = () => {
      wait = lookEveryMs;
      if (this.#followProblem !== "" && this.#state.problem === this.#followProblem) {
        this.#set({ problem: "", refused: false });
      }
      this.#followProblem = "";
    };
    while (!stop.aborted) {
      const free = await this.#together.slot("turn", maxStreams);
      try {
        await (free === undefined ? this.#look(agent, stop, works) : this.#stream(agent, stop, works));
      } catch (error) {
        if (stop.aborted || (await this.#lost(error, conversationId))) {
          return;
        }
        wait = Math.min(wait * 2, retryMostMs);
      } finally {
        free?.();
      }
      const asked = new Promise<void>((resolve) => {
        this.#again = resolve;
      });
      await Promise.race([pause(wait), asked]);
    }
  }

  /** Says what following has failed of. Returns whether it is of no use to try again. */
  async #lost(error: unknown, conversationId: string): Promise<boolean> {
    if (ConnectError.from(error).code === Code.NotFound && this.#state.thread.conversationId === conversationId) {
      await this.begin();
      return true;
    }
    const refused = isRefusal(error);
    this.#followProblem = callText(error);
    this.#set({ problem: this.#followProblem, refused, loading: false });
    return refused; // another token is another panel
  }

  /** Reads one stream to its end. */
  async #stream(agent: Agent, stop: AbortSignal, works: () => void): Promise<void> {
    const silent = new AbortController();
    const listen = () => setTimeout(() => silent.abort(), silentMs);
    let timer = listen();
    let waiting: Event[] = [];
    const flush = () => {
      this.#take(waiting);
      waiting = [];
    };
    this.#set({ thread: joining(this.#state.thread) });
    const { conversationId, sequence } = this.#state.thread;
    try {
      for await (const { kind } of agent.follow(conversationId, sequence, AbortSignal.any([stop, silent.signal]))) {
        clearTimeout(timer);
        timer = listen();
        if (stop.aborted) {
          return;
        }
        works();
        switch (kind.case) {
          case "event":
            waiting.push(kind.value);
            if (!this.#state.loading || waiting.length >= batch) {
              flush();
            }
            break;
          case "caughtUp":
            flush();
            this.#set({ loading: false, thread: withStatus(this.#state.thread, statusOf(kind.value.status)) });
            break;
          case "unknownPlace": // the server has less than was shown here: all of it is read again
            this.#set({ loading: true, thread: { ...emptyThread, conversationId } });
            return;
        }
      }
    } finally {
      clearTimeout(timer);
      silent.abort(); // nobody reads what still comes
      if (!stop.aborted) {
        flush();
      }
    }
  }

  /** Reads what is stored, where other panels hold all the streams that there may be. */
  async #look(agent: Agent, stop: AbortSignal, works: () => void): Promise<void> {
    const { conversationId, sequence } = this.#state.thread;
    const events = await agent.events(conversationId, sequence);
    if (!stop.aborted) {
      works();
      this.#take(events);
      this.#set({ loading: false });
    }
  }

  #take(events: readonly Event[]): void {
    const thread = events.reduce(withEvent, this.#state.thread);
    if (thread !== this.#state.thread) {
      this.#set({ thread });
    }
  }

  /** Sends a message. While a turn runs it waits for its end, or enters it at its next step. */
  async send(text: string, steer = false): Promise<boolean> {
    const { agent } = this.#parts;
    const message = text.trim();
    if (agent === undefined || message === "") {
      return false;
    }
    const { thread, view } = this.#state;
    const { conversationId, running } = thread;
    const messageId = (this.#parts.newId ?? (() => crypto.randomUUID()))();
    if (!running) {
      this.#set({ thread: withMessage(withoutUnsent(thread), message, messageId) });
    }
    this.#set({ problem: "" });
    const same = () => this.#state.view === view && this.#state.thread.conversationId === conversationId;
    try {
      const sent = await this.#deliver(agent, { conversationId, text: message, messageId, steer });
      if (same()) {
        this.#arrived(agent, sent, messageId);
        await this.#parts.keepConversation(sent.conversationId);
      }
    } catch (error) {
      if (same()) {
        this.#notSent(error, message, running);
      }
    }
    void this.refresh();
    return true;
  }

  #arrived(agent: Agent, { conversationId, sequence, waits }: Sent, messageId: string): void {
    const thread = withSent(this.#state.thread, messageId, waits);
    if (thread.conversationId === "") {
      // What comes is news from the first event on.
      this.#attach(agent, { ...thread, conversationId, sequence }, false);
    } else {
      this.#set({ thread });
    }
  }

  /** The message stays in sight, or goes back into the field where a turn runs. */
  #notSent(error: unknown, message: string, running: boolean): void {
    this.#set({ problem: callText(error), refused: isRefusal(error) });
    if (running) {
      this.keepDraft(message);
      this.#set({ view: this.#state.view + 1 });
    } else {
      this.#set({ thread: { ...this.#state.thread, running: false } });
    }
  }

  /** Sends it again where the answer is lost on the way: by its id the server says it once. */
  async #deliver(agent: Agent, message: Outgoing): Promise<Sent> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await agent.send(message);
      } catch (error) {
        if (attempt === sendTries || ConnectError.from(error).code !== Code.Unavailable) {
          throw error;
        }
      }
      await pause(attempt * retryStepMs);
    }
  }

  async stop(): Promise<void> {
    await this.#act((agent, id) => agent.stop(id));
  }

  /** Does something to the shown conversation, and says what does not go well. */
  async #act(does: (agent: Agent, conversationId: string) => Promise<void>): Promise<boolean> {
    const { conversationId } = this.#state.thread;
    return conversationId !== "" && this.#change((agent) => does(agent, conversationId));
  }

  async #change(does: (agent: Agent) => Promise<void>): Promise<boolean> {
    const { agent } = this.#parts;
    if (agent === undefined) {
      return false;
    }
    try {
      await does(agent);
      return true;
    } catch (error) {
      this.#set({ problem: callText(error) });
      return false;
    }
  }

  async editQueued(messageId: string, text: string): Promise<boolean> {
    return this.#act((agent, id) => agent.editQueued(id, messageId, text));
  }

  async removeQueued(messageId: string): Promise<boolean> {
    return this.#act((agent, id) => agent.removeQueued(id, messageId));
  }

  /** All that a tool answered. */
  async output(callId: string): Promise<string> {
    return (await this.#parts.agent?.output(this.#state.thread.conversationId, callId)) ?? "";
  }

  async rename(conversationId: string, title: string): Promise<void> {
    await this.#change((agent) => agent.rename(conversationId, title));
    await this.refresh();
  }

  /** Archives a conversation, and leaves it if it is the shown one. */
  async archive(conversationId: string): Promise<void> {
    const shown = conversationId === this.#state.thread.conversationId;
    if ((await this.#change((agent) => agent.archive(conversationId))) && shown) {
      await this.begin();
    }
    await this.refresh();
  }

  async reopen(conversationId: string): Promise<void> {
    await this.#change((agent) => agent.reopen(conversationId));
    await this.refresh();
  }

  /** Reads the archived conversations, now and with each reading of the list. */
  async showArchived(wanted: boolean): Promise<void> {
    this.#set({ archived: wanted ? [] : undefined });
    if (wanted) {
      await this.refresh();
    }
  }

  /** Shows another conversation. A turn that runs in the one before goes on. */
  async show(conversationId: string): Promise<void> {
    const { agent } = this.#parts;
    if (agent === undefined || conversationId === this.#state.thread.conversationId) {
      return;
    }
    this.#set({ problem: "", view: this.#state.view + 1 });
    this.#attach(agent, { ...emptyThread, conversationId });
    await this.#parts.keepConversation(conversationId);
  }

  /** Leaves the conversation for a new one. A turn that runs in it goes on. */
  async begin(): Promise<void> {
    this.#leave();
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
