/** Sees tabs close. */
import type { Context } from "./context.js";

export interface Patience {
  /** Not longer than this. */
  readonly withinMs?: number;
  /** Not longer than until nothing has closed for this long. */
  readonly quietMs?: number;
}

export class Watch {
  readonly #seen = new Set<number>();
  /** The first ids of tabs that have other ones now. */
  readonly #first = new Map<number, number>();
  readonly #context: Context;
  readonly #stop: () => void;
  readonly #listeners = new Set<() => void>();
  /** What was left of the time when something happened last. */
  #leftThen: number;

  constructor(context: Context) {
    this.#context = context;
    this.#leftThen = context.deadline.left();
    this.#stop = context.browser.onChange((change) => {
      if (change.kind === "replaced") {
        this.#first.set(change.by, this.#first.get(change.id) ?? change.id);
      } else if (change.kind === "removed") {
        this.#see(change.id);
        this.#see(this.#first.get(change.id) ?? change.id);
      }
    });
  }

  /** Something happens that may make tabs close. */
  stir(): void {
    this.#leftThen = this.#context.deadline.left();
  }

  end(): void {
    this.#stop();
  }

  /** There is nothing to wait for any more. */
  giveUp(ids: readonly number[]): void {
    for (const id of ids) {
      this.#see(id);
    }
  }

  #see(id: number): void {
    this.#seen.add(id);
    this.stir();
    for (const listener of [...this.#listeners]) {
      listener();
    }
  }

  /** Resolves once all of some tabs were seen to close, at the end of the patience, or when it is time to answer. */
  closed(ids: readonly number[], { withinMs, quietMs }: Patience): Promise<void> {
    const { signal } = this.#context;
    return new Promise((resolve) => {
      let quiet: ReturnType<typeof setTimeout> | undefined;
      const timer = withinMs === undefined ? undefined : setTimeout(() => done(), withinMs);
      const done = () => {
        clearTimeout(quiet);
        clearTimeout(timer);
        this.#listeners.delete(look);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const look = () => {
        clearTimeout(quiet);
        if (signal.aborted || ids.every((id) => this.#seen.has(id))) {
          done();
        } else if (quietMs !== undefined) {
          quiet = setTimeout(done, quietMs);
        }
      };
      this.#listeners.add(look);
      signal.addEventListener("abort", done, { once: true });
      look();
    });
  }

  /** Whether nothing has closed for some time. It is found out within a limit, and not so if that comes first. */
  calm(ms: number, mostMs: number): Promise<boolean> {
    if (this.#leftThen - this.#context.deadline.left() >= ms) {
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const end = (calm: boolean) => {
        clearTimeout(quiet);
        clearTimeout(limit);
        this.#listeners.delete(again);
        resolve(calm);
      };
      let quiet = setTimeout(() => end(true), ms);
      const limit = setTimeout(() => end(false), Math.max(0, mostMs));
      const again = () => {
        clearTimeout(quiet);
        quiet = setTimeout(() => end(true), ms);
      };
      this.#listeners.add(again);
    });
  }
}
