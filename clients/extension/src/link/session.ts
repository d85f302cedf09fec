/** One link from its first frame to its last. */
import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import {
  type CommandRequest,
  type DeviceFrame,
  DeviceFrameSchema,
  EndReason,
  type Hello,
  type LinkEnd,
  type Outcome,
  type ReportRequest,
  type ReportResponse,
  type ServerFrame,
  type WatchResponse,
  type Welcome,
} from "@throwbar/es/pb/device";
import type { Clock } from "../platform/port.js";
import { Reporter } from "./reporter.js";

/** The two calls that a link is made of, and the one for another token. */
export interface LinkCalls {
  watch(hello: Hello, signal: AbortSignal): AsyncIterable<WatchResponse>;
  report(request: ReportRequest, signal: AbortSignal): Promise<ReportResponse>;
  rotate(): Promise<string>;
}

/** What a session tells the rest of the extension. */
export interface SessionEvents {
  welcome(welcome: Welcome): void;
  command(request: CommandRequest): void;
  cancel(commandId: string): void;
  receipt(commandIds: readonly string[]): void;
  /** The server wants all of the state. */
  resync(): void;
  /** The server wants the device to take another token. */
  rotate(): void;
  /** How long the server took to answer a heartbeat, in milliseconds. */
  roundTrip(ms: number): void;
}

/** Why a session is over. */
export interface SessionEnd {
  readonly reason: EndReason;
  /** How long the server asks to stay away. */
  readonly afterMs: number;
  /** Whether there was a link at all. */
  readonly stood: boolean;
  readonly error?: unknown;
}

/** Until the Welcome says otherwise. */
const firstFrameMs = 15_000;
/** A side that misses two heartbeats and a half is gone. */
const missedBeats = 2.5;
/** How long a link that may be gone is asked whether it is there. */
const probeMs = 3000;

export class SilentServer extends Error {
  override readonly name = "SilentServer";
}

export class Session {
  readonly #calls: LinkCalls;
  readonly #events: SessionEvents;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  #reporter: Reporter | undefined;
  #patienceMs = firstFrameMs;
  #watchdog: ReturnType<typeof setTimeout> | undefined;
  #probe: ReturnType<typeof setTimeout> | undefined;
  /** Number of the last heartbeat. */
  #seen = 0n;

  constructor(calls: LinkCalls, events: SessionEvents, clock: Clock) {
    this.#calls = calls;
    this.#events = events;
    this.#clock = clock;
  }

  /** Ends the session from this side. */
  abort(reason: unknown): void {
    this.#stop.abort(reason);
  }

  /** Queues frames; without a link they are lost, which the next Hello and snapshot make good. */
  push(frames: readonly DeviceFrame[], urgent: boolean): void {
    this.#reporter?.push(frames, urgent);
  }

  /** Says that this side is alive, and learns how fast the server is. */
  beat(): void {
    this.push([beat(this.#seen)], true);
  }

  /** Finds out soon whether the link is there still, after a time in which nobody looked. */
  probe(asleepMs: number): void {
    if (this.#reporter === undefined || asleepMs >= this.#patienceMs) {
      this.abort(new Error("this machine was asleep"));
      return;
    }
    this.#probe ??= setTimeout(() => this.abort(new SilentServer("the server does not answer after a sleep")), probeMs);
    this.beat();
  }

  get stands(): boolean {
    return this.#reporter !== undefined && !this.#stop.signal.aborted;
  }

  async run(hello: Hello): Promise<SessionEnd> {
    let end: LinkEnd | undefined;
    let error: unknown;
    try {
      end = await this.#follow(hello);
    } catch (failure) {
      error = this.#stop.signal.aborted ? this.#stop.signal.reason : failure;
    } finally {
      clearTimeout(this.#watchdog);
      clearTimeout(this.#probe);
      // The stream and the reports of this link end before there is another one.
      this.#stop.abort(error);
    }
    const retry = end?.retryAfter;
    return {
      reason: end?.reason ?? EndReason.UNSPECIFIED,
      afterMs: retry === undefined ? 0 : durationMs(retry),
      stood: this.#reporter !== undefined,
      ...(error === undefined ? {} : { error }),
    };
  }

  async #follow(hello: Hello): Promise<LinkEnd | undefined> {
    this.#alive();
    for await (const response of this.#calls.watch(hello, this.#stop.signal)) {
      this.#alive();
      for (const frame of response.frames) {
        const end = this.#take(frame);
        if (end !== undefined) {
          return end;
        }
      }
    }
    return undefined;
  }

  #alive(): void {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => {
      this.#stop.abort(new SilentServer(`the server was silent for ${Math.round(this.#patienceMs / 1000)} seconds`));
    }, this.#patienceMs);
  }

  #take({ kind }: ServerFrame): LinkEnd | undefined {
    switch (kind.case) {
      case "welcome":
        this.#begin(kind.value);
        return undefined;
      case "heartbeat":
        // Answered rather than sent by a clock: a page's timers may be slowed down, frames are not.
        this.#seen = kind.value.number;
        this.beat();
        return undefined;
      case "command":
        this.#events.command(kind.value);
        return undefined;
      case "cancel":
        this.#events.cancel(kind.value.commandId);
        return undefined;
      case "receipt":
        this.#events.receipt(kind.value.commandIds);
        return undefined;
      case "resync":
        this.#events.resync();
        return undefined;
      case "rotate":
        this.#events.rotate();
        return undefined;
      case "end":
        return kind.value;
      default: // of a newer server
        return undefined;
    }
  }

  #begin(welcome: Welcome): void {
    const beatMs = welcome.heartbeat === undefined ? 0 : durationMs(welcome.heartbeat);
    if (beatMs > 0) {
      this.#patienceMs = beatMs * missedBeats;
      this.#alive();
    }
    this.#reporter ??= new Reporter({
      linkId: welcome.linkId,
      call: (request, signal) => this.#calls.report(request, signal),
      signal: this.#stop.signal,
      clock: this.#clock,
      // A link whose reports are not taken is no link.
      broken: (error) => this.#stop.abort(error),
      answered: (ms) => {
        clearTimeout(this.#probe);
        this.#probe = undefined;
        this.#events.roundTrip(ms);
      },
    });
    this.#events.welcome(welcome);
    if (welcome.rotateToken) {
      this.#events.rotate();
    }
  }
}

function beat(seen: bigint): DeviceFrame {
  return create(DeviceFrameSchema, { kind: { case: "heartbeat", value: { seen } } });
}

export function acknowledgement(commandId: string): DeviceFrame {
  return create(DeviceFrameSchema, { kind: { case: "acknowledgement", value: { commandId } } });
}

export function outcomeFrame(outcome: Outcome): DeviceFrame {
  return create(DeviceFrameSchema, { kind: { case: "outcome", value: outcome } });
}
