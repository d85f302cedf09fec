import type { Together } from "../../src/panel/together.js";

/** What panels of one profile share. */
class Profile {
  readonly held = new Set<string>();
  readonly panels: FakeTogether[] = [];
  readonly waiting: (() => void)[] = [];
}

export class FakeTogether implements Together {
  readonly #profile: Profile;
  readonly #listeners: ((message: unknown) => void)[] = [];

  constructor(profile = new Profile()) {
    this.#profile = profile;
    profile.panels.push(this);
  }

  /** Another panel of the same profile. */
  other(): FakeTogether {
    return new FakeTogether(this.#profile);
  }

  async lead(name: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { held, waiting } = this.#profile;
    while (held.has(name) && !signal.aborted) {
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    if (signal.aborted) {
      return;
    }
    held.add(name);
    await work();
    this.#free(name);
  }

  #free(name: string): void {
    this.#profile.held.delete(name);
    for (const next of this.#profile.waiting.splice(0)) {
      next();
    }
  }

  async slot(name: string, most: number): Promise<(() => void) | undefined> {
    for (let at = 0; at < most; at++) {
      const own = `${name} ${at}`;
      if (!this.#profile.held.has(own)) {
        this.#profile.held.add(own);
        return () => this.#free(own);
      }
    }
    return undefined;
  }

  post(message: unknown): void {
    const sent = structuredClone(message);
    for (const panel of this.#profile.panels) {
      if (panel !== this) {
        queueMicrotask(() => {
          for (const listener of panel.#listeners) {
            listener(sent);
          }
        });
      }
    }
  }

  onMessage(listener: (message: unknown) => void): void {
    this.#listeners.push(listener);
  }
}
