/** The order of the tabs of one window: pinned ones first, each group in one piece. Chromium sees to it in the same way. */
export interface OrderedTab {
  pinned: boolean;
  groupId: number | undefined;
}

/** Where a tab lands among the others if it is asked for at a place. */
export function placeAmong(others: readonly OrderedTab[], tab: OrderedTab, at: number): number {
  const pinned = others.filter((each) => each.pinned).length;
  const wanted = Math.max(0, Math.min(at, others.length));
  return tab.pinned ? Math.min(wanted, pinned) : Math.max(wanted, pinned);
}

/** The group that lies around a place; undefined if none does. */
export function groupAround(others: readonly OrderedTab[], place: number): number | undefined {
  const left = others[place - 1]?.groupId;
  return left !== undefined && left === others[place]?.groupId ? left : undefined;
}

/** The group of a tab that was moved to a place within its window: it joins one around it, and leaves one that it is not beside. */
export function groupAt(others: readonly OrderedTab[], place: number, tab: OrderedTab): number | undefined {
  const around = groupAround(others, place);
  if (around !== undefined || tab.groupId === undefined) {
    return around;
  }
  const beside = others[place - 1]?.groupId === tab.groupId || others[place]?.groupId === tab.groupId;
  const alone = !others.some(({ groupId }) => groupId === tab.groupId);
  return beside || alone ? tab.groupId : undefined;
}

/** Gathers tabs into a new group where the first of them is, but not inside another group. */
export function gather<T extends OrderedTab>(strip: readonly T[], members: ReadonlySet<T>, groupId: number): T[] {
  const inside = strip.filter((tab) => members.has(tab));
  const first = strip.findIndex((tab) => members.has(tab));
  const others = strip.filter((tab) => !members.has(tab));
  let place = strip.slice(0, first).filter((tab) => !members.has(tab)).length;
  for (const tab of inside) {
    tab.pinned = false;
    tab.groupId = groupId;
  }
  const around = groupAround(others, place);
  while (around !== undefined && others[place]?.groupId === around) {
    place++;
  }
  place = Math.max(place, others.filter(({ pinned }) => pinned).length);
  return [...others.slice(0, place), ...inside, ...others.slice(place)];
}

/** Adds tabs to a group that is there: those before it on its left, those behind it on its right. */
export function addToGroup<T extends OrderedTab>(strip: readonly T[], members: ReadonlySet<T>, groupId: number): T[] {
  const first = strip.findIndex((tab) => tab.groupId === groupId);
  const added = strip.filter((tab) => members.has(tab) && tab.groupId !== groupId);
  const left = added.filter((tab) => strip.indexOf(tab) < first);
  const right = added.filter((tab) => strip.indexOf(tab) > first);
  const own = strip.filter((tab) => tab.groupId === groupId);
  const others = strip.filter((tab) => tab.groupId !== groupId && !members.has(tab));
  for (const tab of added) {
    tab.pinned = false;
    tab.groupId = groupId;
  }
  const place = others.filter((tab) => strip.indexOf(tab) < first).length;
  return [...others.slice(0, place), ...left, ...own, ...right, ...others.slice(place)];
}

/** Takes a tab out of its group: to the left of it from its first half, to the right from its second. */
export function takeOut<T extends OrderedTab>(strip: readonly T[], tab: T): T[] {
  const { groupId } = tab;
  const first = strip.findIndex((each) => each.groupId === groupId);
  const last = strip.findLastIndex((each) => each.groupId === groupId);
  const left = strip.indexOf(tab) < first + Math.floor((last - first + 1) / 2);
  tab.groupId = undefined;
  const others = strip.filter((each) => each !== tab);
  const place = left ? first : last;
  return [...others.slice(0, place), tab, ...others.slice(place)];
}
