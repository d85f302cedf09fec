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
import { type Before, effectsOf, readBefore } from "./effects.js";
import { asking, type Landing, land, maybeAsking } from "./landing.js";
import { findTab, findWindow, isNormal, singleFailure, whenFree } from "./targets.js";

/** Written down before a tab is opened: a tab with the address that is none of these is the new one. */
export interface OpenNote {
  readonly url: string;
  readonly before: readonly number[];
  /** A window is opened for it, as there is none to use. */
  readonly inNewWindow?: boolean;
}

const searchMs = 2000;
const searchEveryMs = 50;
/** How long a new tab is watched for the browser to make something else of its address than a page. */
const watchMs = 150;

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
    throw new CommandFailure(ErrorCode.FAILED, `a ${window.kind} window holds no further tabs; choose a normal one`);
  }
  const [note, front, before] = await Promise.all([
    openNote(context, url),
    window?.id ?? frontWindow(context),
    readBefore(context, []),
  ]);
  await context.begin({ ...note, ...(front === undefined ? { inNewWindow: true } : {}) } satisfies OpenNote);
  const tab = await createTab(context, { url, active: false, ...(front === undefined ? {} : { windowId: front }) });
  await appeared(context, tab);
  await show(action, context, tab);
  return opened(context, tab, url, before, front === undefined);
}

export async function openNote(context: Context, url: string): Promise<OpenNote> {
  const tabs = await context.browser.tabs.list();
  return { url, before: tabs.filter((tab) => sameAddress(tab, url)).map(({ id }) => id) };
}

/**
 * Opens a tab, and a window for it if there is none. No window gets the focus by it, unless it is minimized: the browser unfolds that
 * one whatever is asked, also for a tab that comes from another window.
 */
export async function createTab(context: Context, tab: NewTab & { readonly url: string }): Promise<TabInfo> {
  const { tabs, windows } = context.browser;
  try {
    return await whenFree(context, () => (tab.windowId === undefined ? windows.create(tab.url) : tabs.create(tab)));
  } catch (error) {
    throw singleFailure(error);
  }
}

/** The normal window that was in front last, or any; undefined if there is none. A private one has to be named. */
export async function frontWindow(context: Context): Promise<number | undefined> {
  const { windows } = context.browser;
  const [last, all] = await Promise.all([windows.lastFocused(), windows.list()]);
  const normal = all.filter((window) => isNormal(window) && !window.private);
  const choices = [
    normal.find(({ id }) => id === last),
    normal.find(({ focused }) => focused),
    normal.find(({ state }) => state !== "minimized"),
    normal[0],
  ];
  return choices.find((choice) => choice !== undefined)?.id;
}

/**
 * Watches a new tab until its page comes, or for a moment: an address that the browser hands to another program, saves as a file or
 * swallows leaves an empty tab or none, and no error. An empty one is closed again.
 */
async function appeared(context: Context, { id }: TabInfo): Promise<void> {
  const { browser, signal } = context;
  let came = () => {};
  const page = new Promise<void>((resolve) => {
    came = resolve;
  });
  const stop = browser.onChange((change) => {
    if ((change.kind === "tab" || change.kind === "removed") && change.id === id) {
      came();
    }
  });
  try {
    let now = await browser.tabs.get(id);
    if (now !== undefined && now.url === "" && now.pendingUrl !== "") {
      await Promise.race([page, pause(watchMs, signal)]);
      now = await browser.tabs.get(context.current(id));
    }
    if (now !== undefined && address(now) === "") {
      // Between a load that has failed and the browser's own page that says so, a tab has no address for a moment.
      await pause(watchMs, signal);
      now = await browser.tabs.get(context.current(id));
    }
    if (now === undefined) {
      throw new CommandFailure(
        ErrorCode.FAILED,
        "the tab closed at once: the address may be a file that was saved, or belong to another program",
      );
    }
    // While it loads, the browser may be about to say that there is no such server.
    if (address(now) === "" && !now.loading) {
      await browser.tabs.remove([id]).catch(() => undefined);
      throw new CommandFailure(
        ErrorCode.FAILED,
        "the browser opened an empty tab instead of the address; it was closed again",
      );
    }
  } finally {
    stop();
  }
}

/** To open a tab in front would take the focus for its window; to show it afterwards does not. */
async function show(action: OpenTab, context: Context, { id }: TabInfo): Promise<void> {
  if (action.active === false) {
    return;
  }
  try {
    await whenFree(context, () => context.browser.tabs.update(context.current(id), { active: true }));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const tab = compositeId(context.identity, "tab", context.current(id));
    throw new CommandFailure(ErrorCode.FAILED, `the tab ${tab} was opened, but could not be shown: ${why}`);
  }
}

async function opened(
  context: Context,
  tab: TabInfo,
  url: string,
  before: Before,
  inNewWindow: boolean,
): Promise<OpenTab_Result> {
  const effects = await effectsOf(context, before, {
    tabs: [],
    openedWindows: inNewWindow ? [tab.windowId] : [],
    mayFocus: [tab.windowId],
  });
  return create(OpenTab_ResultSchema, { tabId: compositeId(context.identity, "tab", tab.id), url, ...effects });
}

/** Finds the tab that was opened before the worker was stopped. Never opens another. */
export async function recoverOpenTab(action: OpenTab, recovery: Recovery): Promise<OpenTab_Result> {
  const note = recovery.note as OpenNote;
  const tab = await findOpened(recovery, note);
  if (tab === undefined) {
    throw new CommandFailure(
      ErrorCode.INTERRUPTED,
      "the browser stopped the extension while the tab was opened, and no tab with this address is to be found",
    );
  }
  if (!recovery.deadline.passed) {
    await show(action, recovery, tab);
  }
  // Which window had the focus before is not known any more, so nothing is said of it.
  return opened(recovery, tab, note.url, await readBefore(recovery, []), note.inNewWindow === true);
}

/** Looks for a while after it was begun: the browser may still be at it. */
async function findOpened({ browser, signal, sinceBegun }: Recovery, note: OpenNote): Promise<TabInfo | undefined> {
  while (true) {
    const found = (await browser.tabs.list()).find(
      (tab) => sameAddress(tab, note.url) && !note.before.includes(tab.id),
    );
    if (found !== undefined || sinceBegun() >= searchMs || signal.aborted) {
      return found;
    }
    await pause(searchEveryMs, signal);
  }
}

export async function navigateTab(action: NavigateTab, context: Context): Promise<NavigateTab_Result> {
  const url = allowedUrl(action.url);
  const tab = await findTab(context, action.tabId);
  await context.begin(null);
  const load = () => whenFree(context, () => context.browser.tabs.update(tab.id, { url }));
  return navigated(context, tab, url, load);
}

/** Waits until the tab has left its page: the browser says yes at once, even while that page asks the person. */
async function navigated(
  context: Context,
  tab: TabInfo,
  url: string,
  load: () => Promise<unknown>,
): Promise<NavigateTab_Result> {
  let landing: Landing;
  try {
    landing = await land(context, tab, load);
  } catch (error) {
    throw singleFailure(error);
  }
  const failure = navigationFailure(landing, tab, url);
  if (failure !== undefined) {
    throw failure;
  }
  return create(NavigateTab_ResultSchema, { url });
}

/** Undefined where the tab went there. */
function navigationFailure(landing: Landing, tab: TabInfo, url: string): CommandFailure | undefined {
  switch (landing) {
    case "begun":
      return undefined;
    case "gone":
      return new CommandFailure(ErrorCode.NOT_FOUND, "the tab closed meanwhile");
    case "asks":
      return new CommandFailure(
        ErrorCode.FAILED,
        `the tab still shows ${tab.url}: ${asking}; it is in front of its window now, and goes to ${url} if they agree`,
      );
    case "stayed":
      return new CommandFailure(
        ErrorCode.FAILED,
        `the tab still shows ${tab.url}: the person kept the page, or ${url} gave no page but, for example, a file`,
      );
    case "unknown":
      return new CommandFailure(
        ErrorCode.INTERRUPTED,
        `the tab was sent to ${url} and still shows ${tab.url}: ${maybeAsking}`,
      );
  }
}

/** Where the tab is there, that was it; where it is on its way, it is waited for. It is never sent again. */
export async function recoverNavigateTab(action: NavigateTab, recovery: Recovery): Promise<NavigateTab_Result> {
  const url = allowedUrl(action.url);
  const tab = await findTab(recovery, action.tabId);
  if (!sameAddress(tab, url)) {
    throw new CommandFailure(
      ErrorCode.INTERRUPTED,
      `the tab shows ${tab.url}; nobody knows whether it was sent to ${url}`,
    );
  }
  return tab.pendingUrl === url && tab.url !== url
    ? navigated(recovery, tab, url, async () => {})
    : create(NavigateTab_ResultSchema, { url });
}
