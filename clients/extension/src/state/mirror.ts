/** What the server was told last. It turns what the worker read into snapshots and deltas. */
import { create } from "@bufbuild/protobuf";
import type { IdKind } from "@throwbar/es/ids";
import { type Delta, DeltaSchema, type DeviceFrame, SnapshotSchema } from "@throwbar/es/pb/device";
import { type Tab, type TabGroup, TabGroupSchema, TabSchema, type Window, WindowSchema } from "@throwbar/es/pb/state";
import { colourNumber } from "./convert.js";
import { compositeId, type Identity } from "./identity.js";
import type { Change, PlacedTab, PlainGroup, PlainWindow, Replaced, StatePush } from "./push.js";
import { apply, difference, emptyTable, isEmpty, placed, same } from "./table.js";

/** A message may have four megabytes. */
const maxChunkBytes = 1_000_000;
/** What a tab takes beside its texts, with some to spare. */
const tabBytes = 150;
/** Workers of which nothing is taken any more. A message of one that was stopped may come late. */
const maxRetired = 8;
/** Replaced ids that are told again after a snapshot. */
const maxReplaced = 1000;

export type StateFrame = Extract<DeviceFrame["kind"], { case: "snapshot" | "delta" }>;

/** Undefined if everything is needed first. */
export type Taken = readonly Delta[] | undefined;

export class Mirror {
  #table = emptyTable();
  #identity: Identity | undefined;
  #run = "";
  #number = 0;
  readonly #retired: string[] = [];
  #sequence = 0n;
  /** The ids that tabs had, by those that they have. A server that was started again does not know them any more. */
  #replaced = new Map<number, number>();

  /** Whether it has everything that this start of the browser has as this device. */
  has(identity: Identity): boolean {
    return this.#identity?.device === identity.device && this.#identity.boot === identity.boot;
  }

  /** Takes a push over, and says what that changes for the server. */
  take(push: StatePush): Taken {
    const { run, number, full, change } = push;
    if (this.#retired.includes(run) || (!full && (run !== this.#run || number !== this.#number + 1))) {
      return undefined;
    }
    if (run !== this.#run) {
      this.#retired.push(this.#run);
      this.#retired.splice(0, this.#retired.length - maxRetired);
    }
    this.#run = run;
    this.#number = number;
    return full ? this.#takeAll(push) : this.#deltas(change);
  }

  #takeAll({ identity, change }: StatePush): readonly Delta[] {
    const next = emptyTable();
    apply(next, change);
    for (const [id, tab] of next.tabs) {
      const known = this.#table.tabs.get(id);
      next.tabs.set(id, known !== undefined && same(known, tab) ? known : tab);
    }
    const before = this.has(identity) ? this.#table : undefined;
    this.#identity = identity;
    this.#replaced = new Map();
    if (before === undefined) {
      this.#table = next;
      this.#remember(change.replaced);
      return [];
    }
    const different = difference(before, next, change.replaced);
    this.#remember(change.replaced);
    return this.#deltas(different);
  }

  #remember(replaced: readonly Replaced[]): void {
    for (const [old, now] of replaced) {
      this.#replaced.set(old, now);
    }
  }

  #deltas(change: Change): Delta[] {
    const identity = this.#identity;
    if (isEmpty(change) || identity === undefined) {
      return [];
    }
    apply(this.#table, change);
    this.#follow(change);
    const words = new Words(identity);
    let chunks = inChunks(change.tabs);
    if (chunks.length > 1) {
      // The places of a part are right only if all before them are: so the tabs of such a window are all named, in order.
      chunks = inChunks(placed(this.#table, new Set(change.tabs.map(({ tab }) => tab.windowId))));
    }
    const { tabs, windows, groups } = change.removed;
    const rest = {
      windows: change.windows.map((row) => words.window(row)),
      groups: change.groups.map((row) => words.group(row)),
      removed: [...words.ids("tab", tabs), ...words.ids("window", windows), ...words.ids("group", groups)],
      replaced: words.replaced(change.replaced),
    };
    return chunks.map((chunk, at) =>
      create(DeltaSchema, {
        sequence: ++this.#sequence,
        tabs: chunk.map((row) => words.tab(row)),
        ...(at === 0 ? rest : {}),
      }),
    );
  }

  /** Remembers replaced ids as long as the tab is there. */
  #follow({ removed, replaced }: Change): void {
    const gone = new Set(removed.tabs);
    const next = new Map(replaced);
    for (const [old, now] of this.#replaced) {
      if (gone.has(now)) {
        this.#replaced.delete(old);
      } else {
        this.#replaced.set(old, next.get(now) ?? now);
      }
    }
    this.#remember(replaced);
  }

  /** Everything. The deltas that follow count on from it; the first one tells again which ids were replaced. */
  frames(): StateFrame[] {
    const identity = this.#identity;
    if (identity === undefined) {
      return [];
    }
    const words = new Words(identity);
    const sequence = ++this.#sequence;
    const rest = {
      windows: [...this.#table.windows.values()].map((row) => words.window(row)),
      groups: [...this.#table.groups.values()].map((row) => words.group(row)),
    };
    const chunks = inChunks(placed(this.#table));
    const frames: StateFrame[] = chunks.map((tabs, chunk) => ({
      case: "snapshot",
      value: create(SnapshotSchema, {
        sequence,
        chunk,
        last: chunk === chunks.length - 1,
        tabs: tabs.map((row) => words.tab(row)),
        ...(chunk === 0 ? rest : {}),
      }),
    }));
    const replaced = words.replaced([...this.#replaced].slice(-maxReplaced));
    if (replaced.length > 0) {
      frames.push({ case: "delta", value: create(DeltaSchema, { sequence: ++this.#sequence, replaced }) });
    }
    return frames;
  }
}

/** Tabs in portions that fit into a message; at least one portion. */
function inChunks(tabs: readonly PlacedTab[]): PlacedTab[][] {
  const chunks: PlacedTab[][] = [[]];
  let room = maxChunkBytes;
  for (const row of tabs) {
    // A character takes three bytes at most: enough for a bound, and much cheaper than to encode it.
    const size = tabBytes + 3 * (row.tab.url.length + row.tab.title.length);
    if (size > room) {
      chunks.push([]);
      room = maxChunkBytes;
    }
    chunks.at(-1)?.push(row);
    room -= size;
  }
  return chunks;
}

/** Rows in the words of the contract. */
class Words {
  readonly #identity: Identity;

  constructor(identity: Identity) {
    this.#identity = identity;
  }

  ids(kind: IdKind, ids: readonly number[]): string[] {
    return ids.map((id) => compositeId(this.#identity, kind, id));
  }

  #id(kind: IdKind, id: number | undefined): string {
    return id === undefined ? "" : compositeId(this.#identity, kind, id);
  }

  tab({ index, tab: { id, windowId, groupId, ...rest } }: PlacedTab): Tab {
    return create(TabSchema, {
      ...rest,
      index,
      tabId: this.#id("tab", id),
      windowId: this.#id("window", windowId),
      groupId: this.#id("group", groupId),
    });
  }

  window({ id, ...rest }: PlainWindow): Window {
    return create(WindowSchema, { ...rest, windowId: this.#id("window", id) });
  }

  group({ id, windowId, colour, title, collapsed }: PlainGroup): TabGroup {
    return create(TabGroupSchema, {
      groupId: this.#id("group", id),
      windowId: this.#id("window", windowId),
      title,
      colour: colourNumber(colour),
      collapsed,
    });
  }

  replaced(pairs: readonly Replaced[]): { oldTabId: string; newTabId: string }[] {
    return pairs.map(([old, now]) => ({ oldTabId: this.#id("tab", old), newTabId: this.#id("tab", now) }));
  }
}
