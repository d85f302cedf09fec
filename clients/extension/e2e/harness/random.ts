/** Chance that can be had again: a test that uses it prints its seed, and THROWBAR_SEED sets it. */

export class Chance {
  readonly seed: number;
  #state: number;

  constructor(seed = Number(process.env.THROWBAR_SEED ?? Date.now() % 1_000_000)) {
    this.seed = seed;
    this.#state = seed;
  }

  /** From zero to below one. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from zero to below the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  pick<T>(from: readonly T[]): T {
    const at = this.below(from.length);
    if (from.length === 0) {
      throw new Error("there is nothing to pick from");
    }
    return from[at] as T;
  }
}
