/** Sends a link's device frames, in order, and repeats a report under its number until it is answered. */
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type DeviceFrame,
  DeviceFrameSchema,
  type ReportRequest,
  ReportRequestSchema,
  type ReportResponse,
} from "@throwbar/es/pb/device";
import type { Clock } from "../platform/port.js";

export type ReportCall = (request: ReportRequest, signal: AbortSignal) => Promise<ReportResponse>;

const maxFrames = 256;
const maxBytes = 3_000_000;
/** What need not go at once waits this long for company: an acknowledgement mostly for the outcome. */
const lingerMs = 20;
const callMs = 10_000;
const retryMs = [100, 300, 1000, 3000] as const;

/** After these the link is there still, and the same report may get through. */
const passing: ReadonlySet<Code> = new Set([
  Code.Unavailable,
  Code.DeadlineExceeded,
  Code.Unknown,
  Code.ResourceExhausted,
]);

export interface ReporterParts {
  readonly linkId: string;
  readonly call: ReportCall;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Reports cannot be delivered on this link any more. */
  readonly broken: (error: unknown) => void;
  /** A report with a heartbeat was answered, after so many milliseconds. */
  readonly answered: (ms: number) => void;
}

export class Reporter {
  readonly #parts: ReporterParts;
  readonly #queue: DeviceFrame[] = [];
  #sequence = 0n;
  #sending = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(parts: ReporterParts) {
    this.#parts = parts;
    parts.signal.addEventListener("abort", () => clearTimeout(this.#timer), { once: true });
  }

  /** Queues frames. Urgent ones take everything that waits along. */
  push(frames: readonly DeviceFrame[], urgent: boolean): void {
    if (this.#parts.signal.aborted) {
      return;
    }
    this.#queue.push(...frames);
    if (urgent) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#send();
    } else {
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        this.#send();
      }, lingerMs);
    }
  }

  #send(): void {
    if (this.#sending) {
      return; // what is queued goes next
    }
    this.#sending = true;
    this.#drain().then(
      () => {
        this.#sending = false;
      },
      (error: unknown) => this.#parts.broken(error),
    );
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0 && !this.#parts.signal.aborted) {
      this.#sequence++;
      const request = create(ReportRequestSchema, {
        linkId: this.#parts.linkId,
        sequence: this.#sequence,
        frames: this.#take(),
      });
      await this.#deliver(request);
    }
  }

  #take(): DeviceFrame[] {
    let bytes = 0;
    let count = 0;
    for (const frame of this.#queue) {
      bytes += toBinary(DeviceFrameSchema, frame).length;
      if (count > 0 && (count >= maxFrames || bytes > maxBytes)) {
        break;
      }
      count++;
    }
    return this.#queue.splice(0, count);
  }

  async #deliver(request: ReportRequest): Promise<void> {
    const { call, clock, signal, answered } = this.#parts;
    for (let attempt = 0; ; attempt++) {
      const begun = clock.monotonic();
      try {
        await call(request, AbortSignal.any([signal, AbortSignal.timeout(callMs)]));
        if (request.frames.some(({ kind }) => kind.case === "heartbeat")) {
          answered(clock.monotonic() - begun);
        }
        return;
      } catch (error) {
        const wait = retryMs[attempt];
        if (signal.aborted || wait === undefined || !passing.has(codeOf(error))) {
          throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
  }
}

function codeOf(error: unknown): Code {
  const failure = ConnectError.from(error);
  // A call that ran into its own time limit was cancelled by this side.
  return failure.code === Code.Canceled ? Code.DeadlineExceeded : failure.code;
}
