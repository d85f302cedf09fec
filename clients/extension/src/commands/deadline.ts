/** When a command may not run any more. */
import type { Clock } from "../platform/port.js";

/** An answer has to reach the server before the server gives up. */
const answerShare = 0.1;
const answerLeast = 250;
const answerMost = 2000;

/**
 * Counts the time left from the moment of receipt. The monotonic clock decides; the wall clock can only shorten: where the
 * monotonic one stands still while the machine sleeps, nothing must run after it wakes.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #leftMs: number;
  readonly #monotonic: number;
  readonly #receivedAt: number;

  /** receivedAt is the wall clock when the device got the command, which may have been before this worker started. */
  constructor(clock: Clock, leftMs: number, receivedAt: number) {
    this.#clock = clock;
    this.#leftMs = leftMs;
    this.#receivedAt = receivedAt;
    this.#monotonic = clock.monotonic();
  }

  /** Milliseconds left; zero or less once it has passed. */
  left(): number {
    const passed = Math.max(this.#clock.monotonic() - this.#monotonic, this.#clock.wall() - this.#receivedAt);
    return this.#leftMs - passed;
  }

  get passed(): boolean {
    return this.left() <= 0;
  }

  /** Milliseconds until the answer has to be on its way. */
  toAnswer(): number {
    const margin = Math.min(answerMost, Math.max(answerLeast, this.#leftMs * answerShare));
    return Math.max(0, this.left() - margin);
  }
}

/** Thrown where a wait ends because it is time to answer, or because the command was cancelled. */
export class OutOfTime extends Error {
  override readonly name = "OutOfTime";
}

/** Thrown where it was time to answer before a call was made: nothing was done. */
export class NotBegun extends OutOfTime {}

/** Waits for a promise, but not longer than the signal allows. */
export function inTime<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {});
    return Promise.reject(new OutOfTime("out of time"));
  }
  return new Promise<T>((resolve, reject) => {
    const stop = () => reject(new OutOfTime("out of time"));
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** Resolves after some time, or at once when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}
