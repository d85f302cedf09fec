import type { SavedTab } from "@throwbar/es/pb/state";
import type { BrowserPort } from "../platform/port.js";
import type { Identity } from "../state/identity.js";
import type { Asked } from "./asked.js";
import type { Deadline } from "./deadline.js";
import type { Places } from "./places.js";

/** What a command is run with. */
export interface Context {
  readonly browser: BrowserPort;
  readonly identity: Identity;
  readonly deadline: Deadline;
  /** Aborted when it is time to answer, and when the command is cancelled. */
  readonly signal: AbortSignal;
  /**
   * What the server kept of the tabs that the action names by saved ids. Of a command that saves tabs: what it keeps of them, as far
   * as it says so.
   */
  readonly saved: readonly SavedTab[];
  /** Which tabs were asked to close, by whatever command. */
  readonly asked: Asked;
  /** Where tabs of windows and groups that are gone were restored to. */
  readonly places: Places;
  /** The ids under which the browser has tabs whose old id a caller may still use. */
  current(id: number): number;
  /**
   * Writes down that the effect begins, with whatever finds out later how far it came. Nothing that cannot be done twice may be
   * done before this has resolved.
   */
  begin(note: unknown): Promise<void>;
}

/** What a command is taken up with after the worker was stopped in the middle of it. */
export interface Recovery extends Context {
  /** What begin wrote last. */
  readonly note: unknown;
  /** Milliseconds since then, over all workers that were stopped meanwhile. */
  sinceBegun(): number;
}
