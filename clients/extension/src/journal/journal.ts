/**
 * What was begun and how it ended, for 24 hours. It is in the storage that stays: a worker is stopped at any moment, and the
 * server sends a command again when the browser has been restarted, too.
 */
import type { Clock, StorageArea } from "../platform/port.js";

/** A command that was taken on. */
export interface Started {
  readonly state: "started";
  /** Start of the browser in which it was. */
  readonly boot: string;
  readonly at: number;
  /** The encoded CommandRequest. */
  readonly request: string;
  readonly leftMs: number;
  readonly receivedAt: number;
  /** Whether its effect has begun, and what was written down about it. */
  readonly begun?: { readonly note: unknown };
}

export interface Ended {
  readonly state: "ended";
  readonly at: number;
  /** The encoded Outcome. */
  readonly outcome: string;
  /** The server has written it down. */
  readonly receipted: boolean;
}

export type Entry = Started | Ended;

const prefix = "journal/";
const keepMs = 24 * 3600 * 1000;
/** Storage holds ten megabytes in all. */
const maxChars = 6_000_000;
const maxEntries = 5000;

const keyOf = (id: string) => prefix + id;

export class Journal {
  readonly #storage: StorageArea;
  readonly #clock: Clock;
  /** One write after the other, so that an older one never overtakes a newer one of the same command. */
  #writing: Promise<unknown> = Promise.resolve();

  constructor(storage: StorageArea, clock: Clock) {
    this.#storage = storage;
    this.#clock = clock;
  }

  async get(id: string): Promise<Entry | undefined> {
    const key = keyOf(id);
    const entry = (await this.#storage.get([key]))[key] as Entry | undefined;
    return entry !== undefined && this.#fresh(entry) ? entry : undefined;
  }

  start(id: string, entry: Omit<Started, "state" | "at">): Promise<Started> {
    return this.#put(id, { ...entry, state: "started", at: this.#clock.wall() });
  }

  /** Writes down that the effect of a command begins. */
  begin(id: string, entry: Started, note: unknown): Promise<Started> {
    return this.#put(id, { ...entry, begun: { note } });
  }

  end(id: string, outcome: string): Promise<Ended> {
    return this.#put(id, { state: "ended", at: this.#clock.wall(), outcome, receipted: false });
  }

  /** Remembers that the server has outcomes. They stay: an answer may still be asked for again. */
  async receipt(ids: readonly string[]): Promise<void> {
    await this.#alone(async () => {
      const entries = (await this.#storage.get(ids.map(keyOf))) as Record<string, Entry>;
      const ended = Object.entries(entries).flatMap(([key, entry]) =>
        entry.state === "ended" ? [[key, { ...entry, receipted: true }] as const] : [],
      );
      if (ended.length > 0) {
        await this.#storage.set(Object.fromEntries(ended));
      }
    });
  }

  /** Drops everything: what was done as one device is nothing to say as another, perhaps to another server. */
  async forget(): Promise<void> {
    await this.#alone(async () => {
      const keys = Object.keys(await this.#storage.all()).filter((key) => key.startsWith(prefix));
      if (keys.length > 0) {
        await this.#storage.remove(keys);
      }
    });
  }

  /** Everything by command id, the oldest first; drops what is too old or too much. */
  async load(): Promise<[string, Entry][]> {
    return this.#alone(async () => {
      const all = Object.entries(await this.#storage.all())
        .filter(([key]) => key.startsWith(prefix))
        .map(([key, entry]) => [key.slice(prefix.length), entry as Entry] as [string, Entry])
        .sort(([, a], [, b]) => a.at - b.at);
      const kept = new Set(this.#worthKeeping(all));
      const dropped = all.filter((each) => !kept.has(each)).map(([id]) => keyOf(id));
      if (dropped.length > 0) {
        await this.#storage.remove(dropped);
      }
      return all.filter((each) => kept.has(each));
    });
  }

  /** Too old goes; of what the server has anyway, the newest that fit stay; what it has not stays. */
  #worthKeeping(all: readonly [string, Entry][]): [string, Entry][] {
    let chars = 0;
    let count = 0;
    return [...all].reverse().filter(([, entry]) => {
      const size = entry.state === "ended" ? entry.outcome.length : entry.request.length;
      const needed = entry.state === "started" || !entry.receipted;
      const keep = this.#fresh(entry) && (needed || (count < maxEntries && chars + size < maxChars));
      count += keep ? 1 : 0;
      chars += keep ? size : 0;
      return keep;
    });
  }

  #fresh(entry: Entry): boolean {
    return this.#clock.wall() - entry.at < keepMs;
  }

  async #put<E extends Entry>(id: string, entry: E): Promise<E> {
    await this.#alone(() => this.#storage.set({ [keyOf(id)]: entry }));
    return entry;
  }

  #alone<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#writing.then(run);
    this.#writing = result.catch(() => {});
    return result;
  }
}
