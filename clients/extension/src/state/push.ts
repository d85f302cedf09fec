/** Browser state as the worker hands it to the link. Plain objects: messages between parts of an extension are JSON. */
export interface PlainTab {
  readonly tabId: string;
  readonly windowId: string;
  readonly groupId: string;
  readonly index: number;
  readonly url: string;
  readonly title: string;
  readonly active: boolean;
  readonly pinned: boolean;
  readonly muted: boolean;
  readonly audible: boolean;
  readonly discarded: boolean;
}

export interface PlainWindow {
  readonly windowId: string;
  readonly kind: string;
  readonly focused: boolean;
  readonly state: string;
}

export interface PlainGroup {
  readonly groupId: string;
  readonly windowId: string;
  readonly title: string;
  readonly colour: number;
  readonly collapsed: boolean;
}

export interface StatePush {
  /** Whether the tabs are all there are. Windows and groups always are. */
  readonly full: boolean;
  readonly tabs: readonly PlainTab[];
  readonly windows: readonly PlainWindow[];
  readonly groups: readonly PlainGroup[];
  /** Ids of tabs that are gone. */
  readonly removed: readonly string[];
}
