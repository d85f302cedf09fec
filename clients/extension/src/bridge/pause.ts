/** Whether a person has paused this browser. It is stored, and holds in every worker from its first command on. */
import { CommandFailure } from "@throwbar/es/errors";
import { ErrorCode } from "@throwbar/es/pb/command";
import type { StorageArea } from "../platform/port.js";
import { pausedKey } from "./settings.js";

const text =
  "a person has paused this browser: nothing was done; it is resumed there, in the extension's panel or settings";

export class Pause {
  readonly #storage: StorageArea;
  readonly #changed: (paused: boolean) => void;
  #paused = false;
  #settings: Promise<unknown> = Promise.resolve();
  /** Resolves once it is known what is stored. Until then nothing may be begun. */
  readonly ready: Promise<void>;

  constructor(storage: StorageArea, changed: (paused: boolean) => void) {
    this.#storage = storage;
    this.#changed = changed;
    this.ready = this.#read();
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Why no command may be begun now; undefined if it may. */
  refusal(): CommandFailure | undefined {
    return this.#paused ? new CommandFailure(ErrorCode.REFUSED, text) : undefined;
  }

  /**
   * Pauses or ends that, and returns what is so then. A pause holds at once, before it is stored; its end only once that is
   * stored. Throws if it cannot be stored, and then everything is as it was.
   */
  set(paused: boolean): Promise<boolean> {
    const done = this.#settings.then(() => this.#set(paused));
    this.#settings = done.catch(() => {});
    return done;
  }

  async #set(paused: boolean): Promise<boolean> {
    await this.ready;
    const before = this.#paused;
    this.#paused ||= paused;
    try {
      await this.#storage.set({ [pausedKey]: paused });
    } catch (error) {
      this.#paused = before;
      throw error;
    }
    this.#paused = paused;
    if (paused !== before) {
      this.#changed(paused);
    }
    return paused;
  }

  async #read(): Promise<void> {
    try {
      this.#paused ||= (await this.#storage.get([pausedKey]))[pausedKey] === true;
    } catch {
      // Not to be read: nothing says that a person has not paused it.
      this.#paused = true;
    }
  }
}
