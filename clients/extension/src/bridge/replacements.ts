/** Old and new ids of tabs: the browser gives a tab another id when it puts it to sleep. */
import type { StorageArea } from "../platform/port.js";

const key = "replaced";
const maxKept = 2000;

export class Replacements {
  readonly #storage: StorageArea;
  readonly #by = new Map<number, number>();
  /** Resolves once those of earlier workers are known. */
  readonly ready: Promise<void>;

  constructor(storage: StorageArea) {
    this.#storage = storage;
    this.ready = this.#load();
  }

  async #load(): Promise<void> {
    const known = ((await this.#storage.get([key]))[key] ?? []) as [number, number][];
    const own = [...this.#by];
    this.#by.clear();
    for (const [id, by] of [...known, ...own]) {
      this.#by.set(id, by);
    }
  }

  add(id: number, by: number): void {
    this.#by.set(id, by);
    void this.ready
      .then(() => {
        const kept = [...this.#by].slice(-maxKept);
        return this.#storage.set({ [key]: kept });
      })
      .catch(() => {});
  }

  /** All ids that are known to be old, each with the one that its tab has now. */
  all(): (readonly [number, number])[] {
    return [...this.#by.keys()].map((id) => [id, this.current(id)]);
  }

  /** The id that a tab has now. */
  current(id: number): number {
    let now = id;
    for (let by = this.#by.get(now); by !== undefined && by !== id; by = this.#by.get(now)) {
      now = by;
    }
    return now;
  }
}
