/**
 * The table of cases: what a browser does, and what our commands make of it. Each case is run on the fake and on a real Chromium
 * and has one expected value, so where the two differ the tests fail. docs/browser-cases.md is written from it.
 */
import type { CommandStage, Stage } from "./stage.js";

interface Described {
  /** Short, in words with hyphens; no other case of the same level has it. */
  readonly id: string;
  /** What is tried, as a sentence without a full stop. */
  readonly title: string;
  /** Number of the case in the research of bug reports, or the public report, or "tried here". */
  readonly source: string;
  /** What Chromium does, in one sentence. */
  readonly chromium: string;
  /** What our typed result or our port makes of it, in one sentence. */
  readonly ours: string;
  /** Why it cannot be run in a headless Chromium; such a case is run on the fake only. */
  readonly fakeOnly?: string;
  /** With tabs, windows and groups by their names, as the stage gives them. */
  readonly expected: unknown;
}

/** What the browser itself does, seen through the port. */
export interface BrowserCase extends Described {
  run(stage: Stage): Promise<unknown>;
}

/** What a command answers, and what the browser looks like afterwards. */
export interface CommandCase extends Described {
  run(stage: CommandStage): Promise<unknown>;
}
