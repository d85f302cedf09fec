/** Waits between attempts: full jitter, so that many devices do not come back at the same moment. */
const leastMs = 500;
const mostMs = 30_000;

export class Backoff {
  readonly #random: () => number;
  #attempts = 0;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** The wait before the next attempt: what the server asks for at the least, and jitter. */
  next(afterMs = 0): number {
    const ceiling = Math.min(mostMs, leastMs * 2 ** Math.min(this.#attempts + 1, 16));
    this.#attempts++;
    return afterMs + leastMs + this.#random() * (ceiling - leastMs);
  }

  reset(): void {
    this.#attempts = 0;
  }
}
