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

/**
 * A worker that is being stopped takes nothing, for seconds where the machine is busy, and it may be stopped over and over. So
 * a command is handed over until its time is up, and a moment longer for an answer from the journal.
 */
const handoverMs = [0, 100, 250, 500, 1000] as const;
const afterTimeMs = 10_000;
/** A command of an earlier document, of which only the journal knows how much time it has. */
const resumeMs = 60_000;
/** How long a worker, which may have to be started, takes to say that it has something. */
const answerMs = 1500;
/** How often it is asked whether it is there still, while a command runs. */
const pingMs = 1000;

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
    this.#begin(request.commandId, leftMs + afterTimeMs, () => ({
      kind: "run",
      request: encoded,
      leftMs: deadline.left(),
      receivedAt: this.#clock.wall(),
    }));
  }

  /** Takes up a command that only the worker's journal knows. */
  resume(commandId: string): void {
    this.#begin(commandId, resumeMs, () => ({ kind: "resume", commandId }));
  }

  #begin(commandId: string, withinMs: number, order: () => CommandOrder): void {
    if (this.#running.has(commandId)) {
      this.#events.acknowledged(commandId);
      return;
    }
    this.#running.add(commandId);
    this.#handOver(commandId, new Deadline(this.#clock, withinMs, this.#clock.wall()), order, 0);
  }

  #handOver(commandId: string, within: Deadline, order: () => CommandOrder, before: number): void {
    const channel = this.#messages.connect(commandChannel);
    let over = false;
    let watch: ReturnType<typeof setTimeout>;
    const end = () => {
      over = true;
      clearTimeout(watch);
      channel.close();
    };
    const again = () => {
      if (over) {
        return;
      }
      end();
      if (within.passed) {
        // The server has ended it; the journal has what is known.
        this.#running.delete(commandId);
        return;
      }
      const wait = handoverMs[Math.min(before, handoverMs.length - 1)];
      setTimeout(() => this.#handOver(commandId, within, order, before + 1), wait);
    };
    // A channel to a worker that is just being stopped may be lost without a word.
    const expect = () => {
      clearTimeout(watch);
      watch = setTimeout(again, answerMs);
    };
    const heard = () => {
      clearTimeout(watch);
      watch = setTimeout(() => {
        expect();
        channel.post({ kind: "ping" } satisfies CommandOrder);
      }, pingMs);
    };
    channel.onMessage((message) => {
      const news = message as CommandNews;
      if (over) {
        return;
      }
      switch (news.kind) {
        case "here":
          heard();
          break;
        case "acknowledged":
          this.#events.acknowledged(commandId);
          break;
        case "outcome":
          end();
          this.#running.delete(commandId);
          this.#events.ended(fromBinary(OutcomeSchema, base64Decode(news.outcome)));
      }
    });
    channel.onClose(again);
    expect();
    channel.post(order());
  }
}
