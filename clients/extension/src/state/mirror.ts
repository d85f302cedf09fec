/** What the server was told last. It turns what the worker read into snapshots and deltas. */
import { create, toBinary } from "@bufbuild/protobuf";
import { type Delta, DeltaSchema, type Snapshot, SnapshotSchema } from "@throwbar/es/pb/device";
import { type Tab, type TabGroup, TabGroupSchema, TabSchema, type Window, WindowSchema } from "@throwbar/es/pb/state";
import type { PlainGroup, PlainTab, PlainWindow, StatePush } from "./push.js";

/** A message may have four megabytes. */
const maxChunkBytes = 1_000_000;

interface Difference<T> {
  readonly changed: T[];
  readonly removed: string[];
}

/** Rows of one kind by id. */
class Rows<T extends object> {
  readonly rows = new Map<string, T>();
  readonly #idOf: (row: T) => string;

  constructor(idOf: (row: T) => string) {
    this.#idOf = idOf;
  }

  /** Takes rows over and says which are new or different; with `all`, what is not among them is gone. */
  update(rows: readonly T[], all: boolean): Difference<T> {
    const changed = rows.filter((row) => !same(this.rows.get(this.#idOf(row)), row));
    const present = new Set(rows.map(this.#idOf));
    const removed = all ? [...this.rows.keys()].filter((id) => !present.has(id)) : [];
    for (const row of changed) {
      this.rows.set(this.#idOf(row), row);
    }
    return { changed, removed: this.remove(removed) };
  }

  remove(ids: readonly string[]): string[] {
    return ids.filter((id) => this.rows.delete(id));
  }
}

function same<T extends object>(a: T | undefined, b: T): boolean {
  return a !== undefined && (Object.keys(b) as (keyof T)[]).every((key) => a[key] === b[key]);
}

export class Mirror {
  readonly #tabs = new Rows<PlainTab>((tab) => tab.tabId);
  readonly #windows = new Rows<PlainWindow>((window) => window.windowId);
  readonly #groups = new Rows<PlainGroup>((group) => group.groupId);
  #sequence = 0n;
  #filled = false;

  /** False until the worker has handed over everything once. */
  get filled(): boolean {
    return this.#filled;
  }

  /** Takes a push over. Nothing comes back if nothing is different from what the server was told. */
  apply(push: StatePush): Delta[] {
    if (!push.full && !this.#filled) {
      return [];
    }
    this.#filled = true;
    const tabs = this.#tabs.update(push.tabs, push.full);
    const windows = this.#windows.update(push.windows, true);
    const groups = this.#groups.update(push.groups, true);
    const removed = [...tabs.removed, ...this.#tabs.remove(push.removed), ...windows.removed, ...groups.removed];
    if (tabs.changed.length + windows.changed.length + groups.changed.length + removed.length === 0) {
      return [];
    }
    return inChunks(tabs.changed.map(tabMessage)).map((chunk, at) => {
      const rest = { windows: windows.changed.map(windowMessage), groups: groups.changed.map(groupMessage), removed };
      return create(DeltaSchema, { sequence: ++this.#sequence, tabs: chunk, ...(at === 0 ? rest : {}) });
    });
  }

  /** Everything. The deltas that follow count on from it. */
  snapshot(): Snapshot[] {
    const sequence = ++this.#sequence;
    const rest = {
      windows: [...this.#windows.rows.values()].map(windowMessage),
      groups: [...this.#groups.rows.values()].map(groupMessage),
    };
    const chunks = inChunks([...this.#tabs.rows.values()].map(tabMessage));
    return chunks.map((tabs, chunk) =>
      create(SnapshotSchema, {
        sequence,
        chunk,
        last: chunk === chunks.length - 1,
        tabs,
        ...(chunk === 0 ? rest : {}),
      }),
    );
  }
}

/** Tabs in portions that fit into a message; at least one portion. */
function inChunks(tabs: readonly Tab[]): Tab[][] {
  const chunks: Tab[][] = [[]];
  let room = maxChunkBytes;
  for (const tab of tabs) {
    const size = toBinary(TabSchema, tab).length + 8;
    if (size > room) {
      chunks.push([]);
      room = maxChunkBytes;
    }
    chunks.at(-1)?.push(tab);
    room -= size;
  }
  return chunks;
}

const tabMessage = (row: PlainTab): Tab => create(TabSchema, row);
const windowMessage = (row: PlainWindow): Window => create(WindowSchema, row);
const groupMessage = (row: PlainGroup): TabGroup => create(TabGroupSchema, row);
