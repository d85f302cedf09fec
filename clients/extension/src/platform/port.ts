/**
 * What the rest of the extension sees of a browser. The folder chrome implements it; tests have a fake that is held to
 * what Chromium was seen to do.
 */

export interface TabInfo {
  readonly id: number;
  readonly windowId: number;
  /** Undefined if it is in no group. */
  readonly groupId: number | undefined;
  readonly index: number;
  /** Address of the page that is shown. */
  readonly url: string;
  /** Address that is being loaded; empty if there is none. */
  readonly pendingUrl: string;
  readonly title: string;
  readonly active: boolean;
  readonly pinned: boolean;
  readonly muted: boolean;
  readonly audible: boolean;
  readonly discarded: boolean;
  readonly loading: boolean;
  /** Whether its window is a private one. */
  readonly private: boolean;
}

export interface WindowInfo {
  readonly id: number;
  readonly kind: string;
  readonly focused: boolean;
  readonly state: string;
  readonly private: boolean;
}

/** The nine colours of a tab group, as the browser writes them. */
export const groupColours = ["grey", "blue", "red", "yellow", "green", "pink", "purple", "cyan", "orange"] as const;
export type GroupColour = (typeof groupColours)[number];

export interface GroupInfo {
  readonly id: number;
  readonly windowId: number;
  readonly title: string;
  readonly colour: GroupColour;
  readonly collapsed: boolean;
}

export type BrowserErrorKind =
  | "noTab"
  | "noWindow"
  | "noGroup"
  /** A person drags a tab. */
  | "busy"
  | "unsupportedWindow"
  /** The browser opens no such address. */
  | "refusedUrl"
  /** A tab of another window would come between the tabs of a group. */
  | "splitsGroup"
  | "other";

/** A call that the browser refused. */
export class BrowserError extends Error {
  override readonly name = "BrowserError";

  constructor(
    readonly kind: BrowserErrorKind,
    message: string,
    /** The id that is not known, where the browser names it. */
    readonly missingId?: number,
  ) {
    super(message);
  }
}

export interface NewTab {
  /** Left out: the browser's own page for new tabs. */
  readonly url?: string;
  readonly windowId?: number;
  readonly index?: number;
  readonly active: boolean;
  readonly pinned?: boolean;
}

export interface TabChange {
  readonly active?: boolean;
  readonly pinned?: boolean;
  readonly muted?: boolean;
  readonly url?: string;
}

/** Tabs. Which private ones are seen is decided in one place, private.ts. */
export interface TabsPort {
  list(windowId?: number): Promise<TabInfo[]>;
  /** Undefined if there is no such tab. */
  get(id: number): Promise<TabInfo | undefined>;
  /** Given active, it takes the focus for the window, too; a minimized window unfolds and takes it in any case. */
  create(tab: NewTab): Promise<TabInfo>;
  /** Showing a tab leaves the focus and the state of its window as they are. */
  update(id: number, change: TabChange): Promise<TabInfo>;
  /**
   * Settles once all are closed; stays open while a page asks the person. Stops at the first id that is not known. Asking a
   * second time for a tab whose page asks closes it without an answer.
   */
  remove(ids: readonly number[]): Promise<void>;
  /**
   * Pinned tabs stay in front, and lose the pin in another window. A tab that comes to stand between two of one group joins it.
   */
  move(id: number, to: { readonly windowId?: number; readonly index: number }): Promise<TabInfo>;
  reload(id: number, bypassCache: boolean): Promise<void>;
  /** Adds tabs to a group, or to a new one in the given window; returns the group's id. */
  group(ids: readonly number[], into: { readonly groupId: number } | { readonly windowId: number }): Promise<number>;
  ungroup(ids: readonly number[]): Promise<void>;
}

export interface WindowsPort {
  list(): Promise<WindowInfo[]>;
  /** The one that had the focus last; undefined if there is none. */
  lastFocused(): Promise<number | undefined>;
  /** Asks the system to give it the focus, which may come later or not at all. Unfolds a minimized one. */
  focus(id: number): Promise<void>;
  /** Opens a window with one tab. It does not get the focus. */
  create(url: string): Promise<TabInfo>;
}

export interface GroupsPort {
  /** There is no such thing in this browser: nothing is listed, and every other call is refused. */
  readonly missing?: true;
  list(): Promise<GroupInfo[]>;
  update(id: number, change: { readonly title?: string; readonly colour?: GroupColour }): Promise<void>;
}

/** What changed, as far as the browser says. The places of the other tabs of a window shift without a word. */
export type BrowserChange =
  /** loading: another page has come into its place. page: the page has another address or title. */
  | { readonly kind: "tab"; readonly id: number; readonly loading: boolean; readonly page?: boolean }
  /** A tab is new at this place, or has come there. */
  | { readonly kind: "placed"; readonly id: number; readonly windowId: number; readonly index: number }
  /** A tab has left its window for another one. */
  | { readonly kind: "left"; readonly id: number }
  /** A tab is the shown one of its window now, and another one is not. */
  | { readonly kind: "shown"; readonly id: number; readonly windowId: number }
  /** Any of the window's tabs may be different. */
  | { readonly kind: "window"; readonly id: number }
  | { readonly kind: "removed"; readonly id: number }
  | { readonly kind: "replaced"; readonly id: number; readonly by: number }
  | { readonly kind: "windows" }
  | { readonly kind: "groups" };

export interface BrowserPort {
  readonly tabs: TabsPort;
  readonly windows: WindowsPort;
  readonly groups: GroupsPort;
  /** Calls the listener for each change; returns what ends that. */
  onChange(listener: (change: BrowserChange) => void): () => void;
  /** A cheap call. Each one keeps the worker from being stopped for another 30 seconds. */
  stayAwake(): Promise<void>;
  /** Whether the browser shows private windows to the extension. That changes only with a new start of it. */
  seesPrivate(): Promise<boolean>;
}

export interface StorageArea {
  get(keys: readonly string[]): Promise<Record<string, unknown>>;
  all(): Promise<Record<string, unknown>>;
  set(items: Record<string, unknown>): Promise<void>;
  remove(keys: readonly string[]): Promise<void>;
}

export interface StoragePort {
  /** Lives as long as the browser runs, longer than a worker. */
  readonly session: StorageArea;
  /** Stays. */
  readonly local: StorageArea;
  onLocalChange(listener: (keys: readonly string[]) => void): void;
}

/** One side of a conversation between two parts of the extension. */
export interface Channel {
  readonly name: string;
  post(message: unknown): void;
  onMessage(listener: (message: unknown) => void): void;
  /** The other side closed it or is gone. */
  onClose(listener: () => void): void;
  close(): void;
}

/** How the parts of the extension talk to each other. */
export interface MessagePort {
  /** Undefined if no part took the message. */
  send(message: unknown): Promise<unknown>;
  /** Tells the pages that are open, and wakes nobody. */
  tell(message: unknown): void;
  /** A listener that returns undefined leaves the message to others. */
  onMessage(listener: (message: unknown) => Promise<unknown> | undefined): void;
  connect(name: string): Channel;
  onConnect(listener: (channel: Channel) => void): void;
}

/** What the extension's icon shows. */
export interface Badge {
  /** At most four characters; empty for none. */
  readonly text: string;
  readonly colour: string;
  readonly title: string;
}

export interface Clock {
  /** Milliseconds that pass evenly, whatever happens to the wall clock. */
  monotonic(): number;
  /** Milliseconds since 1970. */
  wall(): number;
}

export interface About {
  readonly version: string;
  /** Browser and version, for example Chromium 156. */
  readonly agent: string;
  /** Operating system, for example linux. */
  readonly platform: string;
}
