/** Chance that comes out the same each time for one seed. */
type Choice = readonly [weight: number, run: () => unknown, may?: () => boolean];

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed + 1, 0x9e3779b1) >>> 0 || 1;
  }

  /** A number from zero to one, without it. */
  next(): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    this.#state >>>= 0;
    return this.#state / 4_294_967_296;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[this.below(from.length)];
  }

  /** Does one thing, by weight. */
  run(...choices: readonly Choice[]): void {
    const may = choices.filter(([, , allowed]) => allowed?.() ?? true);
    let at = this.next() * may.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, run] of may) {
      at -= weight;
      if (at < 0) {
        run();
        return;
      }
    }
  }
}
