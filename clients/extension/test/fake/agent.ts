import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Event, EventSchema } from "@throwbar/es/pb/agent";
import type { Agent, Conversation, Model } from "../../src/panel/agent.js";

type Kind = NonNullable<MessageInitShape<typeof EventSchema>["kind"]>;

/** An agent whose events a test makes. */
export class FakeAgent implements Agent {
  readonly stored: Event[] = [];
  readonly sent: string[] = [];
  readonly stopped: string[] = [];
  readonly failures: Error[] = [];
  answer: Model = { name: "m", hint: "" };
  list: Conversation[] = [];
  /** Events of other conversations, by id; those of "conv" are what is stored. */
  readonly others = new Map<string, Event[]>();
  #live: (Event | Error | "end")[] = [];
  #wake: () => void = () => {};

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

  /** Something that happens: stored, unless it is a delta. */
  store(kind: Kind): Event {
    const sequence = BigInt(this.stored.length + 1);
    const event = create(EventSchema, { kind, sequence, conversationId: "conv" });
    this.stored.push(event);
    return event;
  }

  say(kind: Kind): void {
    const delta = kind.case === "textDelta" || kind.case === "reasoningDelta";
    this.#put(delta ? create(EventSchema, { kind, conversationId: "conv" }) : this.store(kind));
  }

  breakOff(error: Error): void {
    this.#put(error);
  }

  end(): void {
    this.#put("end");
  }

  #put(item: Event | Error | "end"): void {
    this.#live.push(item);
    this.#wake();
  }

  async *chat(conversationId: string, message: string, signal: AbortSignal): AsyncGenerator<Event> {
    this.#fail();
    this.sent.push(`${conversationId}: ${message}`);
    signal.addEventListener("abort", () => this.#wake());
    try {
      yield* this.#follow(signal);
    } finally {
      this.#live = [];
    }
  }

  async *#follow(signal: AbortSignal): AsyncGenerator<Event> {
    while (!signal.aborted) {
      const item = this.#live.shift();
      if (item === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      } else if (item === "end") {
        return;
      } else if (item instanceof Error) {
        throw item;
      } else {
        yield item;
      }
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

  async conversations(): Promise<Conversation[]> {
    return this.list;
  }
}
