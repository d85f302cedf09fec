/** Notices what changes in the browser and hands it on, many changes at once. */
import type { BrowserChange, BrowserPort } from "../platform/port.js";
import type { Identity } from "./identity.js";
import { Pace } from "./pace.js";
import type { Change, Replaced, StatePush } from "./push.js";
import { copyTable, difference, emptyTable, isEmpty, placed, type Table } from "./table.js";
import { noWork, View, type Work } from "./view.js";

/** Opening 20 tabs is 80 events. A change waits this long for others, and at most so long in all. */
const quietMs = 100;
const mostMs = 250;
/** Reading many tabs takes its time. It gets this part of it at most, however much happens. */
const readShare = 0.2;
/** The wait after a reading that failed, as it does while a person drags a tab. */
const againMs = 250;
/** The wait before a tab that is on its way is read again; it doubles, and ends after so many times. */
const lookMs = 1000;
const mostLooks = 5;

export interface CollectorParts {
  readonly browser: BrowserPort;
  /** Undefined while the browser is not paired. */
  readonly identity: () => Promise<Identity | undefined>;
  /** True if it was taken, false if the taker needs everything, undefined if there is none. */
  readonly send: (push: StatePush) => Promise<boolean | undefined>;
  /** All known ids that tabs had before. */
  readonly replaced: () => Iterable<Replaced>;
}

export class Collector {
  readonly #parts: CollectorParts;
  readonly #view: View;
  readonly #pace = new Pace();
  readonly #run = crypto.randomUUID();
  #number = 0;
  #work = noWork();
  /** Tabs that are told of later, and when. */
  readonly #later = new Map<number, number>();
  #replaced: Replaced[] = [];
  /** What was handed on, as of which device. */
  #told: { readonly table: Table; readonly identity: Identity } | undefined;
  /** What an earlier worker had noticed and not handed on is not known, so the first reading is of everything. */
  #everything = true;
  #dirty = true;
  /** When the first change came that was not handed on yet. */
  #since: number | undefined;
  #last = 0;
  #rested = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(parts: CollectorParts) {
    this.#parts = parts;
    this.#view = new View(parts.browser);
  }

  changed(change: BrowserChange): void {
    const now = performance.now();
    if (change.kind === "replaced") {
      this.#replaced.push([change.id, change.by]);
    }
    if (change.kind === "tab") {
      const due = this.#pace.due(change.id, now);
      if (due > now) {
        this.#later.set(change.id, due);
        this.#schedule();
        return;
      }
    }
    this.#view.note(change, this.#work);
    this.#soon(now);
  }

  #soon(now: number): void {
    this.#dirty = true;
    this.#since ??= now;
    this.#last = now;
    this.#schedule();
  }

  #schedule(): void {
    const soon =
      this.#since === undefined ? Number.POSITIVE_INFINITY : Math.min(this.#last + quietMs, this.#since + mostMs);
    const at = Math.max(this.#rested, Math.min(soon, ...this.#later.values()));
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (Number.isFinite(at)) {
      this.#timer = setTimeout(() => void this.#hand(false), Math.max(0, at - performance.now()));
    }
  }

  /** Reads everything again, soon, and hands on what is different. */
  everything(): void {
    this.#everything = true;
    this.#soon(performance.now());
  }

  /** Reads everything and hands all of it on, because whoever takes it has lost what was handed on before. */
  again(): Promise<void> {
    this.#told = undefined;
    this.#everything = true;
    this.#dirty = true;
    return this.flush();
  }

  /** Hands on what has changed so far. */
  flush(): Promise<void> {
    return this.#hand(true);
  }

  #hand(all: boolean): Promise<void> {
    this.#sending = this.#sending
      .then(() => this.#send(all))
      .catch(() => {
        this.#everything = true;
        this.#rested = performance.now() + againMs;
        this.#soon(performance.now());
      });
    return this.#sending;
  }

  /** What is to be read now. What is told of later stays, unless all is asked for. */
  #take(all: boolean, now: number): Work {
    const work = this.#work;
    this.#work = noWork();
    for (const [id, due] of this.#later) {
      if (all || due <= now) {
        work.tabs.add(id);
        this.#later.delete(id);
        this.#dirty = true;
      }
    }
    this.#since = undefined;
    return work;
  }

  async #send(all: boolean): Promise<void> {
    const identity = await this.#parts.identity();
    const began = performance.now();
    if (identity === undefined) {
      return;
    }
    const work = this.#take(all, began);
    this.#schedule();
    if (!this.#dirty) {
      return;
    }
    const everything = this.#everything;
    this.#everything = false;
    this.#dirty = false;
    await this.#view.read(work, everything);
    const now = performance.now();
    this.#pace.told(work.tabs, now);
    this.#rested = now + (now - began) * (1 / readShare - 1);
    this.#lookAgain(now);
    await this.#tell(identity);
  }

  /** Tabs that are on their way somewhere are read again now and then: no event tells if they do not get there. */
  #lookAgain(now: number): void {
    for (const [id, times] of this.#view.pending) {
      if (times <= mostLooks && !this.#later.has(id)) {
        this.#later.set(id, now + lookMs * 2 ** times);
      }
    }
    this.#schedule();
  }

  async #tell(identity: Identity): Promise<void> {
    const now = copyTable(this.#view.table);
    const replaced = this.#replaced.length;
    const before =
      this.#told?.identity.device === identity.device && this.#told.identity.boot === identity.boot
        ? this.#told.table
        : undefined;
    const change = before === undefined ? whole(now, this.#parts.replaced()) : difference(before, now, this.#pairs());
    if (before === undefined || !isEmpty(change)) {
      const full = before === undefined;
      const taken = await this.#parts.send({ identity, run: this.#run, number: ++this.#number, full, change });
      if (taken !== true) {
        this.#told = undefined;
        this.#dirty = true;
        if (taken === false) {
          this.#rested = Math.max(this.#rested, performance.now() + (full ? againMs : 0));
          this.#soon(performance.now());
        }
        return;
      }
    }
    this.#told = { table: now, identity };
    this.#replaced.splice(0, replaced);
  }

  /** The replaced ids since the last time; of a tab that was given several, the first and the last. */
  #pairs(): Replaced[] {
    const by = new Map(this.#replaced);
    return this.#replaced.map(([old, next]) => {
      let now = next;
      for (let further = by.get(now); further !== undefined && further !== old; further = by.get(now)) {
        now = further;
      }
      return [old, now];
    });
  }
}

/** Everything, as a change from nothing. */
function whole(table: Table, replaced: Iterable<Replaced>): Change {
  return {
    ...difference(emptyTable(), { ...emptyTable(), windows: table.windows, groups: table.groups }, []),
    tabs: placed(table),
    replaced: [...replaced].filter(([old, now]) => !table.tabs.has(old) && table.tabs.has(now)),
  };
}
