/** Puts restored tabs into the groups that they were in. */
import { Colour, type SavedTab } from "@throwbar/es/pb/state";
import type { TabInfo } from "../platform/port.js";
import { groupColour } from "../state/convert.js";
import { nativeId } from "../state/identity.js";
import type { Context } from "./context.js";
import type { Row } from "./rooms.js";
import { whenFree } from "./targets.js";

interface Member {
  readonly saved: SavedTab;
  readonly tab: TabInfo;
}

/** Tabs that were in one group come into one again: into the old one, if it is still there, or into that which took its place. */
export async function regroup(
  context: Context,
  rows: readonly Row[],
  done: ReadonlyMap<string, number>,
): Promise<void> {
  const { browser } = context;
  const now = new Map((await browser.tabs.list()).map((tab) => [tab.id, tab]));
  const members = new Map<string, Member[]>();
  const strays: number[] = [];
  for (const { id, saved } of rows) {
    const native = done.get(id);
    const tab = native === undefined ? undefined : now.get(context.current(native));
    if (tab === undefined) {
      continue;
    }
    const key = keyOf(saved);
    if (key === "" || saved.pinned) {
      strays.push(...(tab.groupId === undefined ? [] : [tab.id]));
    } else {
      // A group is in one window.
      const place = `${tab.windowId} ${key}`;
      members.set(place, [...(members.get(place) ?? []), { saved, tab }]);
    }
  }
  // The tabs are open; that they are in no group, or in a wrong one, is less than that.
  if (strays.length > 0) {
    // The browser takes a tab into a group when it is opened between two tabs of it.
    await whenFree(context, () => browser.tabs.ungroup(strays)).catch(() => undefined);
  }
  for (const some of members.values()) {
    const [first] = some;
    const key = first === undefined ? "" : keyOf(first.saved);
    await context.places.inTurn(key, () => groupAgain(context, some)).catch(() => undefined);
  }
}

const keyOf = ({ groupId, groupTitle, groupColour: colour }: SavedTab) =>
  groupId || (groupTitle === "" ? "" : `${groupTitle}/${colour}`);

async function groupAgain(context: Context, members: readonly Member[]): Promise<void> {
  const { browser, identity, places } = context;
  const [first] = members;
  if (first === undefined) {
    return;
  }
  const { saved, tab } = first;
  const key = keyOf(saved);
  const old = nativeId(identity, "group", saved.groupId);
  const here = (await browser.groups.list()).filter(({ windowId }) => windowId === tab.windowId);
  const target =
    here.find(({ id }) => id === old) ??
    here.find(({ id }) => id === places.of(key)) ??
    // Grouped before the worker was stopped, if there was no time to write that down.
    (typeof old === "number" ? undefined : here.find(({ id }) => members.some((each) => each.tab.groupId === id)));
  const ids = members.flatMap((each) => (each.tab.groupId === target?.id && target !== undefined ? [] : [each.tab.id]));
  const into = target === undefined ? { windowId: tab.windowId } : { groupId: target.id };
  const groupId =
    target !== undefined && ids.length === 0 ? target.id : await whenFree(context, () => browser.tabs.group(ids, into));
  if (target === undefined) {
    await places.keep(key, groupId);
  }
  if (groupId !== old) {
    // Also if it is not new: the worker may have been stopped before this.
    const colour = groupColour(saved.groupColour ?? Colour.UNSPECIFIED);
    const look = { title: saved.groupTitle, ...(colour === undefined ? {} : { colour }) };
    await whenFree(context, () => browser.groups.update(groupId, look));
  }
}
