/** Browser state as the worker hands it to the link. Plain objects: messages between parts of an extension are JSON. */
import type { GroupInfo } from "../platform/port.js";
import type { Identity } from "./identity.js";

/** A tab without its place, which shifts when others come and go. Texts are as they may be sent. */
export interface PlainTab {
  readonly id: number;
  readonly windowId: number;
  /** Undefined if it is in no group. */
  readonly groupId?: number;
  readonly url: string;
  readonly title: string;
  readonly active: boolean;
  readonly pinned: boolean;
  readonly muted: boolean;
  readonly audible: boolean;
  readonly discarded: boolean;
  readonly private: boolean;
}

export interface PlacedTab {
  readonly index: number;
  readonly tab: PlainTab;
}

export interface PlainWindow {
  readonly id: number;
  readonly kind: string;
  readonly focused: boolean;
  readonly state: string;
  readonly private: boolean;
}

export type PlainGroup = GroupInfo;

/** The id that a tab had, and the one that it has. */
export type Replaced = readonly [old: number, now: number];

/**
 * What is different. Tabs that are not named keep their order among each other; those that are have the place that they are
 * named with. So a tab that closes does not name all those behind it.
 */
export interface Change {
  readonly tabs: readonly PlacedTab[];
  readonly windows: readonly PlainWindow[];
  readonly groups: readonly PlainGroup[];
  readonly removed: {
    readonly tabs: readonly number[];
    readonly windows: readonly number[];
    readonly groups: readonly number[];
  };
  readonly replaced: readonly Replaced[];
}

/** What one worker tells, in order. */
export interface StatePush {
  readonly identity: Identity;
  /** Tells one start of the worker from another. */
  readonly run: string;
  /** Counts the pushes of this run, from one. */
  readonly number: number;
  /** Whether the change is all there is, counted from nothing. Its replaced ids are all that are known then. */
  readonly full: boolean;
  readonly change: Change;
}
