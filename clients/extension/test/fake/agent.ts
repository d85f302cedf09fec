import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ConversationStatus,
  type Event,
  EventSchema,
  type WatchConversationResponse,
  WatchConversationResponseSchema,
} from "@throwbar/es/pb/agent";
import type { Agent, Conversation, Model, Outgoing, Sent } from "../../src/panel/agent.js";

type Kind = NonNullable<MessageInitShape<typeof EventSchema>["kind"]>;

const frame = (kind: NonNullable<MessageInitShape<typeof WatchConversationResponseSchema>["kind"]>) =>
  create(WatchConversationResponseSchema, { kind });

/** Somebody who follows. */
interface Follower {
  readonly frames: (WatchConversationResponse | Error)[];
  wake: () => void;
}

/** An agent whose events a test makes. What is stored of "conv" is followed by cursor; pieces reach who follows just then. */
export class FakeAgent implements Agent {
  readonly stored: Event[] = [];
  /** What was sent, once for each message. */
  readonly sent: string[] = [];
  readonly acts: string[] = [];
  readonly stopped: string[] = [];
  /** What the next calls end with. */
  readonly failures: Error[] = [];
  /** Where each stream began. */
  readonly followed: bigint[] = [];
  answer: Model = { name: "m", hint: "" };
  list: Conversation[] = [];
  archivedList: Conversation[] = [];
  waits = false;
  running = false;
  /** What has come of a message that is not stored yet. */
  partial = "";
  /** Events of other conversations, by id; those of "conv" are what is stored. */
  readonly others = new Map<string, Event[]>();
  readonly #followers = new Set<Follower>();
  readonly #seen = new Set<string>();

  #fail(): void {
    const failure = this.failures.shift();
    if (failure !== undefined) {
      throw failure;
    }
  }

  async model(): Promise<Model> {
    this.#fail();
    return this.answer;
  }

  /** Something that happens: stored, and told to whoever follows. */
  store(kind: Kind): Event {
    const sequence = BigInt(this.stored.length + 1);
    const event = create(EventSchema, { kind, sequence, conversationId: "conv" });
    this.stored.push(event);
    this.running = kind.case === "turnStarted" || (this.running && kind.case !== "turnEnded");
    if (kind.case === "message" || kind.case === "turnEnded") {
      this.partial = "";
    }
    this.#tell(frame({ case: "event", value: event }));
    return event;
  }

  say(kind: Kind): void {
    if (kind.case === "textDelta") {
      this.partial += kind.value.text ?? "";
    }
    if (kind.case === "textDelta" || kind.case === "reasoningDelta") {
      this.#tell(frame({ case: "event", value: create(EventSchema, { kind, conversationId: "conv" }) }));
    } else {
      this.store(kind);
    }
  }

  /** Every stream breaks. */
  breakOff(error: Error): void {
    this.#tell(error);
  }

  get followers(): number {
    return this.#followers.size;
  }

  #tell(item: WatchConversationResponse | Error): void {
    for (const follower of this.#followers) {
      follower.frames.push(item);
      follower.wake();
    }
  }

  async send({ conversationId, text, messageId, steer }: Outgoing): Promise<Sent> {
    if (!this.#seen.has(messageId)) {
      this.#fail();
      this.#seen.add(messageId);
      this.sent.push(`${conversationId}: ${text}${steer ? " (steer)" : ""}`);
    }
    this.#fail();
    return { conversationId: conversationId || "conv", waits: this.waits, sequence: BigInt(this.stored.length) };
  }

  async *follow(conversationId: string, after: bigint, signal: AbortSignal): AsyncGenerator<WatchConversationResponse> {
    this.#fail();
    this.followed.push(after);
    const stored = this.others.get(conversationId) ?? this.stored;
    if (after > BigInt(stored.length)) {
      yield frame({ case: "unknownPlace", value: { sequence: BigInt(stored.length) } });
      return;
    }
    const mine: Follower = { frames: [], wake: () => {} };
    for (const event of stored.slice(Number(after))) {
      mine.frames.push(frame({ case: "event", value: event }));
    }
    if (stored === this.stored && this.partial !== "") {
      const kind = { case: "textDelta", value: { text: this.partial } } as const;
      mine.frames.push(frame({ case: "event", value: create(EventSchema, { kind, conversationId }) }));
    }
    const status = this.running && stored === this.stored ? ConversationStatus.RUNNING : ConversationStatus.IDLE;
    mine.frames.push(frame({ case: "caughtUp", value: { sequence: BigInt(stored.length), status } }));
    if (stored === this.stored) {
      this.#followers.add(mine);
    }
    signal.addEventListener("abort", () => mine.wake());
    try {
      while (!signal.aborted) {
        const item = mine.frames.shift();
        if (item instanceof Error) {
          throw item;
        }
        if (item !== undefined) {
          yield item;
        } else {
          await new Promise<void>((resolve) => {
            mine.wake = resolve;
          });
        }
      }
    } finally {
      this.#followers.delete(mine);
    }
  }

  async stop(conversationId: string): Promise<void> {
    this.#fail();
    this.stopped.push(conversationId);
  }

  async events(conversationId: string, after: bigint): Promise<Event[]> {
    this.#fail();
    return (this.others.get(conversationId) ?? this.stored).filter(({ sequence }) => sequence > after);
  }

  async conversations(archived: boolean): Promise<Conversation[]> {
    return archived ? this.archivedList : this.list;
  }

  async #act(what: string): Promise<void> {
    this.#fail();
    this.acts.push(what);
  }

  rename = (id: string, title: string) => this.#act(`rename ${id} ${title}`);
  archive = (id: string) => this.#act(`archive ${id}`);
  reopen = (id: string) => this.#act(`reopen ${id}`);
  editQueued = (id: string, messageId: string, text: string) => this.#act(`edit ${id} ${messageId} ${text}`);
  removeQueued = (id: string, messageId: string) => this.#act(`remove ${id} ${messageId}`);

  async output(_conversationId: string, callId: string): Promise<string> {
    this.#fail();
    return `all of ${callId}`;
  }
}

/** A row of the list. */
export const conversation = (id: string, change: Partial<Conversation> = {}): Conversation => ({
  id,
  handle: id.slice(0, 4),
  title: id,
  status: "idle",
  updatedAt: 1,
  parentId: "",
  agent: "",
  queued: 0,
  ...change,
});
