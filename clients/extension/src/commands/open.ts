/** openTab and navigateTab. */
import { create } from "@bufbuild/protobuf";
import { CommandFailure } from "@throwbar/es/errors";
import { ErrorCode } from "@throwbar/es/pb/command";
import {
  type NavigateTab,
  type NavigateTab_Result,
  NavigateTab_ResultSchema,
  type OpenTab,
  type OpenTab_Result,
  OpenTab_ResultSchema,
} from "@throwbar/es/pb/tabs";
import { checkUrl } from "@throwbar/es/url";
import type { NewTab, TabInfo } from "../platform/port.js";
import { address, sameAddress } from "../state/convert.js";
import { compositeId } from "../state/identity.js";
import type { Context, Recovery } from "./context.js";
import { pause } from "./deadline.js";
import { findTab, findWindow, isNormal, singleFailure, whenFree } from "./targets.js";

/** Written down before a tab is opened: a tab with the address that is none of these is the new one. */
export interface OpenNote {
  readonly url: string;
  readonly before: readonly number[];
}

const searchMs = 2000;
const searchEveryMs = 50;

export function allowedUrl(input: string): string {
  const verdict = checkUrl(input);
  if (!verdict.ok) {
    throw new CommandFailure(ErrorCode.REFUSED, verdict.text);
  }
  return verdict.url;
}

export async function openTab(action: OpenTab, context: Context): Promise<OpenTab_Result> {
  const url = allowedUrl(action.url);
  const window = action.windowId === undefined ? undefined : await findWindow(context, action.windowId);
  if (window !== undefined && !isNormal(window)) {
    throw new CommandFailure(ErrorCode.FAILED, `a ${window.kind} window holds no further tabs`);
  }
  const [note, windowId] = await Promise.all([openNote(context, url), window?.id ?? frontWindow(context)]);
  await context.begin(note);
  const active = action.active ?? true;
  return opened(
    context,
    await createTab(context, { url, active, ...(windowId === undefined ? {} : { windowId }) }),
    url,
  );
}

export async function openNote(context: Context, url: string): Promise<OpenNote> {
  const tabs = await context.browser.tabs.list();
  return { url, before: tabs.filter((tab) => sameAddress(tab, url)).map(({ id }) => id) };
}

/** Opens a tab, and a window for it if there is none. */
export async function createTab(context: Context, tab: NewTab & { readonly url: string }): Promise<TabInfo> {
  const { tabs, windows } = context.browser;
  try {
    return await whenFree(context, () => (tab.windowId === undefined ? windows.create(tab.url) : tabs.create(tab)));
  } catch (error) {
    throw singleFailure(error);
  }
}

/** The normal window that was in front last, or any; undefined if there is none. */
export async function frontWindow(context: Context): Promise<number | undefined> {
  const { windows } = context.browser;
  const [last, all] = await Promise.all([windows.lastFocused(), windows.list()]);
  const normal = all.filter(isNormal);
  return (normal.find(({ id }) => id === last) ?? normal.find(({ focused }) => focused) ?? normal[0])?.id;
}

async function opened(context: Context, tab: TabInfo, url: string): Promise<OpenTab_Result> {
  // An address that the browser swallows leaves an empty tab and no error.
  const now = address(tab) === "" ? await context.browser.tabs.get(tab.id) : undefined;
  if (now !== undefined && address(now) === "") {
    throw new CommandFailure(ErrorCode.FAILED, "the browser opened an empty tab instead of the address");
  }
  return create(OpenTab_ResultSchema, { tabId: compositeId(context.identity, "tab", tab.id), url });
}

/** Finds the tab that was opened before the worker was stopped. Never opens another. */
export async function recoverOpenTab(_action: OpenTab, recovery: Recovery): Promise<OpenTab_Result> {
  const note = recovery.note as OpenNote;
  const tab = await findOpened(recovery, note, new Set());
  if (tab === undefined) {
    throw new CommandFailure(
      ErrorCode.INTERRUPTED,
      "the browser stopped the extension while the tab was opened, and no tab with this address is to be found",
    );
  }
  return create(OpenTab_ResultSchema, { tabId: compositeId(recovery.identity, "tab", tab.id), url: note.url });
}

/** Looks for a while: the browser may still be at it. */
export async function findOpened(
  context: Context,
  note: OpenNote,
  taken: ReadonlySet<number>,
): Promise<TabInfo | undefined> {
  for (let waited = 0; ; waited += searchEveryMs) {
    const found = (await context.browser.tabs.list()).find(
      (tab) => sameAddress(tab, note.url) && !note.before.includes(tab.id) && !taken.has(tab.id),
    );
    if (found !== undefined || waited >= searchMs || context.signal.aborted) {
      return found;
    }
    await pause(searchEveryMs, context.signal);
  }
}

export async function navigateTab(action: NavigateTab, context: Context): Promise<NavigateTab_Result> {
  const url = allowedUrl(action.url);
  const tab = await findTab(context, action.tabId);
  await context.begin(null);
  try {
    await whenFree(context, () => context.browser.tabs.update(tab.id, { url }));
  } catch (error) {
    throw singleFailure(error);
  }
  return create(NavigateTab_ResultSchema, { url });
}

/** Where the tab is on its way to the address, or there, that was it. */
export async function recoverNavigateTab(action: NavigateTab, recovery: Recovery): Promise<NavigateTab_Result> {
  const url = allowedUrl(action.url);
  const tab = await findTab(recovery, action.tabId);
  if (!sameAddress(tab, url)) {
    throw new CommandFailure(
      ErrorCode.INTERRUPTED,
      `the tab shows ${tab.url}; nobody knows whether it was sent to ${url}`,
    );
  }
  return create(NavigateTab_ResultSchema, { url });
}
