/**
 * Where tabs of windows and groups that are gone were restored to, so that what comes back later comes to the same place. Known for
 * as long as the browser runs.
 */
import type { StorageArea } from "../platform/port.js";

const key = "places";
const maxKept = 1000;

export class Places {
  readonly #session: StorageArea;
  /** The browser's own ids, by the composite ids that the windows and groups had. */
  readonly #now = new Map<string, number>();
  #writing: Promise<void>;
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly ready: Promise<void>;

  constructor(session: StorageArea) {
    this.#session = session;
    this.ready = this.#load();
    this.#writing = this.ready.catch(() => {});
  }

  async #load(): Promise<void> {
    const known = ((await this.#session.get([key]))[key] ?? []) as [string, number][];
    for (const [id, native] of known) {
      this.#now.set(id, native);
    }
  }

  /** The window or group that took the place of one; it may be gone, too. */
  of(id: string): number | undefined {
    return this.#now.get(id);
  }

  /** Runs one after the other what looks for the place of one window or group, or makes one: two commands may be at it at once. */
  inTurn<T>(id: string, run: () => Promise<T>): Promise<T> {
    const done = (this.#turns.get(id) ?? Promise.resolve()).then(run);
    this.#turns.set(
      id,
      done.catch(() => undefined),
    );
    return done;
  }

  /** A place that cannot be written down is no reason to fail: it is known to this worker. */
  keep(id: string, native: number): Promise<void> {
    this.#now.set(id, native);
    this.#writing = this.#writing
      .then(() => this.#session.set({ [key]: [...this.#now].slice(-maxKept) }))
      .catch(() => {});
    return this.#writing;
  }
}
