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
  readonly begun?: { readonly note: unknown; readonly at: number };
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
/** How often what is too old or too much is dropped while commands are run; also each time the link is dialled. */
const sweepMs = 3600 * 1000;

const keyOf = (id: string) => prefix + id;

export class Journal {
  readonly #storage: StorageArea;
  readonly #clock: Clock;
  /** One write after the other, so that an older one never overtakes a newer one of the same command. */
  #writing: Promise<unknown> = Promise.resolve();
  /** Ends that the storage does not take. They are known as long as this worker lives. */
  readonly #unwritten = new Map<string, Ended>();
  #swept: number;

  constructor(storage: StorageArea, clock: Clock) {
    this.#storage = storage;
    this.#clock = clock;
    this.#swept = clock.wall();
  }

  async get(id: string): Promise<Entry | undefined> {
    const key = keyOf(id);
    const entry = this.#unwritten.get(id) ?? ((await this.#storage.get([key]))[key] as Entry | undefined);
    return entry !== undefined && this.#fresh(entry) ? entry : undefined;
  }

  /** Fails if the storage does not take it: then the command may not be run. */
  start(id: string, entry: Omit<Started, "state" | "at">): Promise<Started> {
    return this.#put(id, { ...entry, state: "started", at: this.#clock.wall() });
  }

  /** Writes down that the effect of a command begins. Fails if the storage does not take it: then it may not begin. */
  begin(id: string, entry: Started, note: unknown): Promise<Started> {
    return this.#put(id, { ...entry, begun: { note, at: this.#clock.wall() } });
  }

  /** What a command has done is done, whether that can be written down or not. */
  async end(id: string, outcome: string): Promise<Ended> {
    const entry: Ended = { state: "ended", at: this.#clock.wall(), outcome, receipted: false };
    try {
      return await this.#put(id, entry);
    } catch {
      this.#unwritten.set(id, entry);
      return entry;
    }
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
    for (const id of ids) {
      await this.#writeAfterAll(id);
    }
  }

  /** By now the storage may take it. */
  async #writeAfterAll(id: string): Promise<void> {
    const entry = this.#unwritten.get(id);
    if (entry === undefined) {
      return;
    }
    const known = { ...entry, receipted: true };
    this.#unwritten.set(id, known);
    try {
      await this.#put(id, known);
      this.#unwritten.delete(id);
    } catch {
      // It stays known as it was.
    }
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
    const kept = await this.#alone(() => this.#sweep());
    const unwritten = [...this.#unwritten].filter(([, entry]) => this.#fresh(entry));
    return [...kept.filter(([id]) => !this.#unwritten.has(id)), ...unwritten];
  }

  async #sweep(most = maxChars): Promise<[string, Entry][]> {
    this.#swept = this.#clock.wall();
    const all = Object.entries(await this.#storage.all())
      .filter(([key]) => key.startsWith(prefix))
      .map(([key, entry]) => [key.slice(prefix.length), entry as Entry] as [string, Entry])
      .sort(([, a], [, b]) => a.at - b.at);
    const kept = new Set(this.#worthKeeping(all, most));
    const dropped = all.filter((each) => !kept.has(each)).map(([id]) => keyOf(id));
    if (dropped.length > 0) {
      await this.#storage.remove(dropped);
    }
    return all.filter((each) => kept.has(each));
  }

  /** Too old goes; of what the server has anyway, the newest that fit stay; what it has not stays. */
  #worthKeeping(all: readonly [string, Entry][], most: number): [string, Entry][] {
    let chars = 0;
    let count = 0;
    return [...all].reverse().filter(([, entry]) => {
      const size = JSON.stringify(entry).length;
      const needed = entry.state === "started" || !entry.receipted;
      const keep = this.#fresh(entry) && (needed || (count < maxEntries && chars + size < most));
      count += keep ? 1 : 0;
      chars += keep ? size : 0;
      return keep;
    });
  }

  #fresh(entry: Entry): boolean {
    return this.#clock.wall() - entry.at < keepMs;
  }

  async #put<E extends Entry>(id: string, entry: E): Promise<E> {
    const write = () => this.#storage.set({ [keyOf(id)]: entry });
    await this.#alone(async () => {
      try {
        await write();
      } catch {
        // The storage is full: all goes that the server has anyway.
        await this.#sweep(0);
        await write();
      }
    });
    if (this.#clock.wall() - this.#swept > sweepMs) {
      this.#swept = this.#clock.wall();
      void this.#alone(() => this.#sweep()).catch(() => {});
    }
    return entry;
  }

  #alone<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#writing.then(run);
    this.#writing = result.catch(() => {});
    return result;
  }
}
