/** From the ids of a caller to tabs and windows that exist. */
import { CommandFailure } from "@throwbar/es/errors";
import { ErrorCode } from "@throwbar/es/pb/command";
import { type ItemOutcome, ItemStatus } from "@throwbar/es/pb/state";
import { BrowserError, type TabInfo, type WindowInfo } from "../platform/port.js";
import { compositeId, nativeId } from "../state/identity.js";
import type { Context } from "./context.js";
import { inTime, NotBegun, pause } from "./deadline.js";
import { failedItem, item, notFound, unchanged } from "./items.js";

/** A tab that a caller named. */
export interface Target {
  /** As the caller gave it. */
  readonly id: string;
  readonly tab: TabInfo | undefined;
  /** The id it has now, where that is another one. */
  readonly newId: string;
}

export interface FoundTarget extends Target {
  readonly tab: TabInfo;
}

export const isFound = (target: Target): target is FoundTarget => target.tab !== undefined;

/** From here on one question for all tabs is cheaper than one for each, of which each takes a tenth of a millisecond. */
export const askForAll = 32;

function wrongForm(id: string, what: string): CommandFailure {
  return new CommandFailure(
    ErrorCode.INVALID,
    `${JSON.stringify(id)} is no id of a ${what}; copy it from a list or search`,
  );
}

/** The tabs that ids name, each once, in the order of the ids. One that is no tab id at all refuses the whole command. */
export async function findTabs(context: Context, ids: readonly string[]): Promise<Target[]> {
  const natives = new Map<string, number | "stale">();
  for (const id of ids) {
    const native = nativeId(context.identity, "tab", id);
    if (native === "invalid") {
      throw wrongForm(id, "tab");
    }
    natives.set(id, native === "stale" ? native : context.current(native));
  }
  const find = await finder(context, natives.size);
  const seen = new Set<number>();
  const targets: Target[] = [];
  for (const [id, native] of natives) {
    const tab = native === "stale" ? undefined : await find(native);
    if (tab !== undefined && seen.has(tab.id)) {
      continue; // an old and a new id of one tab
    }
    if (tab !== undefined) {
      seen.add(tab.id);
    }
    const now = tab === undefined ? id : compositeId(context.identity, "tab", tab.id);
    targets.push({ id, tab, newId: now === id ? "" : now });
  }
  return targets;
}

async function finder(context: Context, count: number): Promise<(id: number) => Promise<TabInfo | undefined>> {
  const { tabs } = context.browser;
  if (count < askForAll) {
    return (id) => tabs.get(id);
  }
  const all = new Map((await tabs.list()).map((tab) => [tab.id, tab]));
  return async (id) => all.get(id);
}

export async function findTab(context: Context, id: string): Promise<TabInfo> {
  const [target] = await findTabs(context, [id]);
  if (target?.tab === undefined) {
    throw new CommandFailure(ErrorCode.NOT_FOUND, `there is no tab ${id} now; list the tabs again`);
  }
  return target.tab;
}

export async function findWindow(context: Context, id: string): Promise<WindowInfo> {
  const native = nativeId(context.identity, "window", id);
  if (native === "invalid") {
    throw wrongForm(id, "window");
  }
  const window =
    native === "stale" ? undefined : (await context.browser.windows.list()).find((each) => each.id === native);
  if (window === undefined) {
    throw new CommandFailure(ErrorCode.NOT_FOUND, `there is no window ${id} now; list the windows again`);
  }
  return window;
}

export const isNormal = (window: WindowInfo | undefined): boolean => window?.kind === "normal";

/** A failure of the whole command, from what the browser said about its only target. */
export function singleFailure(error: unknown): unknown {
  if (!(error instanceof BrowserError)) {
    return error;
  }
  switch (error.kind) {
    case "noTab":
    case "noWindow":
    case "noGroup":
      return new CommandFailure(ErrorCode.NOT_FOUND, error.message);
    case "busy":
      return new CommandFailure(ErrorCode.BUSY, error.message, true);
    case "refusedUrl":
      return new CommandFailure(ErrorCode.REFUSED, error.message);
    default:
      return new CommandFailure(ErrorCode.FAILED, error.message);
  }
}

type Timed = Pick<Context, "signal" | "deadline">;

const busyPauses = [50, 100, 200, 400, 800];

/**
 * Repeats a call while a person drags the tab. Only for calls that the browser refuses whole. Nothing is called once it is time to
 * answer.
 */
export async function whenFree<T>(context: Timed, run: () => Promise<T>): Promise<T> {
  for (const ms of busyPauses) {
    try {
      return await begun(context, run);
    } catch (error) {
      if (!(error instanceof BrowserError && error.kind === "busy") || context.signal.aborted) {
        throw error;
      }
      await pause(ms, context.signal);
      if (context.signal.aborted) {
        throw error;
      }
    }
  }
  return begun(context, run);
}

async function begun<T>({ signal, deadline }: Timed, run: () => Promise<T>): Promise<T> {
  if (signal.aborted || deadline.passed) {
    throw new NotBegun("no time left");
  }
  return inTime(run(), signal);
}

/** The tabs that are there now, by their ids. */
export async function tabsById(
  context: Pick<Context, "browser">,
  ids: readonly number[],
): Promise<Map<number, TabInfo>> {
  const { tabs } = context.browser;
  const found = ids.length < askForAll ? await Promise.all(ids.map((id) => tabs.get(id))) : await tabs.list();
  return new Map(found.flatMap((tab) => (tab === undefined ? [] : [[tab.id, tab] as const])));
}

type Outcome = Omit<ItemOutcome, "id" | "newId" | "$typeName">;

/** Does the same to each tab, all at once, and says for each one what came of it. Repeats what a person who drags a tab keeps off. */
export function eachTab(
  context: Context,
  targets: readonly Target[],
  run: (tab: TabInfo) => Promise<Outcome | undefined>,
): Promise<ItemOutcome[]> {
  return eachOnce(targets, (tab) => whenFree(context, () => run(tab)));
}

/** The same for what repeats by itself what can be repeated. */
export function eachOnce(
  targets: readonly Target[],
  run: (tab: TabInfo) => Promise<Outcome | undefined>,
): Promise<ItemOutcome[]> {
  return Promise.all(
    targets.map(async ({ id, tab, newId }) => {
      if (tab === undefined) {
        return notFound(id);
      }
      try {
        const other = await run(tab);
        return item(id, other?.status ?? ItemStatus.OK, other?.detail, newId);
      } catch (error) {
        return failedItem(id, error);
      }
    }),
  );
}

export interface ReadBack {
  readonly items: ItemOutcome[];
  /** The tabs that are as asked, by the ids that they had before. */
  readonly tabs: number[];
}

/** What each tab's outcome is once the browser was read again: one that is as asked is OK, whatever the call said. */
export async function readBack(
  context: Context,
  targets: readonly Target[],
  tried: readonly ItemOutcome[],
  isSo: (tab: TabInfo) => boolean,
): Promise<ReadBack> {
  const ids = targets.filter(isFound).map(({ tab }) => context.current(tab.id));
  const now = await tabsById(context, ids);
  const done: number[] = [];
  const items = targets.map(({ id, tab, newId }, at) => {
    const was = tried[at] ?? notFound(id);
    const is = tab === undefined ? undefined : now.get(context.current(tab.id));
    if (tab === undefined || is === undefined) {
      return notFound(id);
    }
    if (was.status === ItemStatus.UNSUPPORTED_WINDOW) {
      return was;
    }
    if (isSo(is)) {
      done.push(tab.id);
      return item(id, ItemStatus.OK, "", newId);
    }
    return was.status === ItemStatus.OK ? unchanged(id, newId) : was;
  });
  return { items, tabs: done };
}
