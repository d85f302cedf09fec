/**
 * Tabs that were asked to close and are still open. Their pages may be asking the person whether to leave, and a browser that is
 * asked a second time meanwhile closes the tab without an answer, and what was typed is lost: so each tab is asked once. That holds
 * over commands and over workers, for as long as the browser runs.
 *
 * The browser does not say what the person answers. Seen in Chromium: after "stay" the call that asked stays open for ever, and no
 * event comes. So a tab counts as asked until there is proof that its page runs again: while the question is up, a page changes
 * neither its address nor its title, and none is loaded in its place. A tab without such proof is asked again by force only.
 */
import type { BrowserPort, Clock, StorageArea } from "../platform/port.js";

const key = "asked";
/** What a page did just before it asked is heard a moment after. Such news proves nothing. */
const proofMs = 2000;

export class Asked {
  readonly #browser: BrowserPort;
  readonly #session: StorageArea;
  readonly #clock: Clock;
  /** Wall clock of the asking, by the browser's own tab id. */
  readonly #at = new Map<number, number>();
  #writing: Promise<void>;
  #planned: Promise<void> | undefined;
  /** Resolves once the tabs that earlier workers asked are known. Before that nothing may be asked. */
  readonly ready: Promise<void>;

  /** Has to be made while the worker starts: it listens to the browser. */
  constructor(browser: BrowserPort, session: StorageArea, clock: Clock) {
    this.#browser = browser;
    this.#session = session;
    this.#clock = clock;
    browser.onChange((change) => {
      switch (change.kind) {
        case "removed":
        case "replaced":
          // A replaced tab was put to sleep: its page is gone, and the question with it.
          this.release([change.id]);
          break;
        case "tab":
          if (change.loading || change.page === true) {
            this.#alive(change.id);
          }
          break;
        default:
      }
    });
    this.ready = this.#load();
    this.#writing = this.ready.catch(() => {});
  }

  async #load(): Promise<void> {
    const known = ((await this.#session.get([key]))[key] ?? []) as [number, number][];
    if (known.length === 0) {
      return;
    }
    const open = new Set((await this.#browser.tabs.list()).map(({ id }) => id));
    for (const [id, at] of known.filter(([each]) => open.has(each))) {
      this.#at.set(id, at);
    }
  }

  has(id: number): boolean {
    return this.#at.has(id);
  }

  /**
   * Says which of some tabs the caller may ask to close, because nobody else has: for those it resolves once that is written
   * down. Fails if it cannot be, and then nobody may ask.
   */
  async claim(ids: readonly number[]): Promise<readonly number[]> {
    await this.ready;
    return this.#mark(ids.filter((id) => !this.#at.has(id)));
  }

  /** The same for tabs that are closed by force, whoever has asked them: all of them. */
  async seize(ids: readonly number[]): Promise<readonly number[]> {
    await this.ready;
    return this.#mark(ids);
  }

  async #mark(ids: readonly number[]): Promise<readonly number[]> {
    if (ids.length === 0) {
      return ids;
    }
    const now = this.#clock.wall();
    const fresh = ids.filter((id) => !this.#at.has(id));
    for (const id of ids) {
      this.#at.set(id, now);
    }
    try {
      await this.#write();
    } catch (error) {
      this.release(fresh);
      throw error;
    }
    return ids;
  }

  /** Tabs that are gone, or that were not asked after all. */
  release(ids: readonly number[]): void {
    const some = ids.filter((id) => this.#at.delete(id));
    if (some.length > 0) {
      // Many close at once; what is not written down in time is found out when it is read: those tabs are gone.
      this.#planned ??= this.#writing.then(() => this.#write()).catch(() => {});
    }
  }

  #alive(id: number): void {
    const at = this.#at.get(id);
    if (at !== undefined && this.#clock.wall() - at >= proofMs) {
      this.release([id]);
    }
  }

  #write(): Promise<void> {
    this.#planned = undefined;
    const written = this.#writing.then(() => this.#session.set({ [key]: [...this.#at] }));
    this.#writing = written.catch(() => {});
    return written;
  }
}
