/**
 * In which window a saved tab comes back. A window that is still there, or the one that has taken its place, takes its tabs back.
 * Tabs of a window that is gone come into a new one together, as they were; after a restart of the browser all windows are others,
 * and undoing a mass close gives each its own again. Only a tab that somebody saved for later on its own, and whose window an
 * earlier start of the browser had, comes to the window in front: a window for each such tab is what nobody expects.
 */
import type { SavedTab } from "@throwbar/es/pb/state";
import type { GroupInfo } from "../platform/port.js";
import { nativeId } from "../state/identity.js";
import type { Context } from "./context.js";
import { frontWindow } from "./open.js";
import { isNormal } from "./targets.js";

export interface Row {
  readonly id: string;
  /** In the form in which it may be opened. */
  readonly url: string;
  readonly saved: SavedTab;
}

/** A window that takes tabs back. */
export interface Room {
  /** The id that the window had. */
  readonly old: string;
  /** Undefined until the window is opened. */
  windowId: number | undefined;
  /** Another command has opened the window for tabs of its own. */
  shared?: boolean;
  /** In the order in which they are opened. */
  readonly rows: readonly Row[];
  /** The place for a tab; at the end if undefined. */
  indexOf(row: Row): number | undefined;
}

/** Which window a row comes to, and whether the places that the tabs had mean anything there. */
interface Home {
  readonly windowId: number | undefined;
  readonly places: "old" | "own" | "end";
}

export async function plan(
  context: Context,
  rows: readonly Row[],
  opened: ReadonlyMap<string, number>,
): Promise<Room[]> {
  const { browser, places } = context;
  await places.ready;
  const [windows, groups, front] = await Promise.all([
    browser.windows.list(),
    browser.groups.list(),
    frontWindow(context),
  ]);
  const normal = new Set(windows.filter(isNormal).map(({ id }) => id));
  const known: Known = { context, normal, groups, opened, front, alone: aloneIn(rows) };
  const rooms = new Map<string, { readonly old: string; readonly home: Home; readonly rows: Row[] }>();
  for (const row of rows) {
    const home = homeOf(known, row);
    const old = row.saved.windowId;
    const key = home.windowId === undefined ? `new ${old}` : `${home.windowId} ${home.places}`;
    const room = rooms.get(key) ?? { old, home, rows: [] };
    room.rows.push(row);
    rooms.set(key, room);
  }
  return [...rooms.values()].map(toRoom);
}

/** The window that another command has opened for the tabs of one that is gone. */
export async function placeNow({ browser, places }: Context, old: string): Promise<number | undefined> {
  const native = places.of(old);
  return (await browser.windows.list()).find((window) => window.id === native && isNormal(window))?.id;
}

interface Known {
  readonly context: Context;
  readonly normal: ReadonlySet<number>;
  readonly groups: readonly GroupInfo[];
  readonly opened: ReadonlyMap<string, number>;
  readonly front: number | undefined;
  readonly alone: ReadonlySet<string>;
}

/** Windows of which only one tab is restored. */
function aloneIn(rows: readonly Row[]): ReadonlySet<string> {
  const count = new Map<string, number>();
  for (const { saved } of rows) {
    count.set(saved.windowId, (count.get(saved.windowId) ?? 0) + 1);
  }
  return new Set([...count].flatMap(([id, tabs]) => (tabs === 1 ? [id] : [])));
}

function homeOf(known: Known, { saved }: Row): Home {
  const { context, normal, groups } = known;
  const home = windowFor(known, saved);
  const group = saved.groupId === "" ? "invalid" : nativeId(context.identity, "group", saved.groupId);
  const now = typeof group === "number" ? group : context.places.of(saved.groupId);
  const elsewhere = groups.find(({ id, windowId }) => id === now && windowId !== home.windowId && normal.has(windowId));
  // A person took the group to another window, and its tabs belong to it.
  return elsewhere === undefined ? home : { windowId: elsewhere.windowId, places: "end" };
}

function windowFor({ context, normal, opened, front, alone }: Known, saved: SavedTab): Home {
  const native = nativeId(context.identity, "window", saved.windowId);
  if (typeof native === "number" && normal.has(native)) {
    return { windowId: native, places: "old" };
  }
  const instead = opened.get(saved.windowId) ?? context.places.of(saved.windowId);
  if (instead !== undefined && normal.has(instead)) {
    return { windowId: instead, places: "old" };
  }
  const forLater = native === "stale" && !saved.closed && alone.has(saved.windowId);
  if (front !== undefined && (forLater || native === "invalid")) {
    return { windowId: front, places: "end" };
  }
  return { windowId: undefined, places: "own" };
}

function toRoom({
  old,
  home,
  rows,
}: {
  readonly old: string;
  readonly home: Home;
  readonly rows: readonly Row[];
}): Room {
  // Pinned tabs come first in every window, and each tab pushes those behind it further.
  const order = [...rows].sort(
    (a, b) => Number(b.saved.pinned) - Number(a.saved.pinned) || a.saved.index - b.saved.index,
  );
  const places = new Map(order.map(({ id }, place) => [id, place]));
  const indexOf = ({ id, saved }: Row) => {
    switch (home.places) {
      case "old":
        return saved.index;
      case "own":
        return places.get(id);
      case "end":
        return undefined;
    }
  };
  return { old, windowId: home.windowId, rows: order, indexOf };
}
