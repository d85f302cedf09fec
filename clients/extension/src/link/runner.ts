/** Hands commands to the worker, and hands them over again when the browser has stopped it. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type CommandRequest, CommandRequestSchema, type Outcome, OutcomeSchema } from "@throwbar/es/pb/device";
import { type CommandNews, type CommandOrder, commandChannel } from "../bridge/messages.js";
import { Deadline } from "../commands/deadline.js";
import type { Clock, MessagePort } from "../platform/port.js";

export interface RunnerEvents {
  acknowledged(commandId: string): void;
  ended(outcome: Outcome): void;
}

/** A worker that is stopped over and over, or does not come up. */
const maxHandovers = 5;
const handoverMs = 200;

export class Runner {
  readonly #messages: MessagePort;
  readonly #clock: Clock;
  readonly #events: RunnerEvents;
  readonly #running = new Set<string>();

  constructor(messages: MessagePort, clock: Clock, events: RunnerEvents) {
    this.#messages = messages;
    this.#clock = clock;
    this.#events = events;
  }

  run(request: CommandRequest): void {
    const leftMs = request.timeLeft === undefined ? 0 : durationMs(request.timeLeft);
    const deadline = new Deadline(this.#clock, leftMs, this.#clock.wall());
    const encoded = base64Encode(toBinary(CommandRequestSchema, request));
    // The time left is what is left when it is handed over, which may be again, to another worker.
    this.#begin(request.commandId, () => ({
      kind: "run",
      request: encoded,
      leftMs: deadline.left(),
      receivedAt: this.#clock.wall(),
    }));
  }

  /** Takes up a command that only the worker's journal knows. */
  resume(commandId: string): void {
    this.#begin(commandId, () => ({ kind: "resume", commandId }));
  }

  #begin(commandId: string, order: () => CommandOrder): void {
    if (this.#running.has(commandId)) {
      this.#events.acknowledged(commandId);
      return;
    }
    this.#running.add(commandId);
    this.#handOver(commandId, order, 1);
  }

  #handOver(commandId: string, order: () => CommandOrder, attempt: number): void {
    const channel = this.#messages.connect(commandChannel);
    let over = false;
    channel.onMessage((message) => {
      const news = message as CommandNews;
      if (news.kind === "acknowledged") {
        this.#events.acknowledged(commandId);
        return;
      }
      over = true;
      channel.close();
      this.#running.delete(commandId);
      this.#events.ended(fromBinary(OutcomeSchema, base64Decode(news.outcome)));
    });
    channel.onClose(() => {
      if (over) {
        return;
      }
      if (attempt >= maxHandovers) {
        // The server's deadline ends it; the journal has what is known.
        this.#running.delete(commandId);
        return;
      }
      setTimeout(() => this.#handOver(commandId, order, attempt + 1), attempt === 1 ? 0 : handoverMs);
    });
    channel.post(order());
  }
}
