import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Case, execute, type ResultOf } from "@throwbar/es/commands";
import { CommandFailure } from "@throwbar/es/errors";
import { ActionSchema, ErrorCode } from "@throwbar/es/pb/command";
import { type ItemOutcome, ItemStatus, type SavedTab } from "@throwbar/es/pb/state";
import { Asked } from "../../src/commands/asked.js";
import type { Context } from "../../src/commands/context.js";
import { Deadline } from "../../src/commands/deadline.js";
import { handlers } from "../../src/commands/handlers.js";
import { Places } from "../../src/commands/places.js";
import { compositeId } from "../../src/state/identity.js";
import type { FakeBrowser } from "./browser.js";
import { FakeClock } from "./clock.js";
import { FakeArea } from "./storage.js";

export const identity = { device: "dev1", boot: "boot" };

export const tabId = (native: number) => compositeId(identity, "tab", native);
export const windowId = (native: number) => compositeId(identity, "window", native);
export const groupId = (native: number) => compositeId(identity, "group", native);

export type Kind = NonNullable<MessageInitShape<typeof ActionSchema>["kind"]>;

export interface Bench {
  readonly context: Context;
  readonly notes: unknown[];
  /** It is time to answer. */
  readonly timeUp: () => void;
}

/** With a session of its own, as if the browser had just started, unless it is to go on with an earlier one. */
export function bench(browser: FakeBrowser, saved: readonly SavedTab[] = [], session = new FakeArea()): Bench {
  const stop = new AbortController();
  const notes: unknown[] = [];
  const context: Context = {
    browser,
    identity,
    deadline: new Deadline(new FakeClock(), 30_000, new FakeClock().wall()),
    signal: stop.signal,
    saved,
    asked: new Asked(browser, session, new FakeClock()),
    places: new Places(session),
    current: (id) => id,
    begin: async (note) => {
      // As it comes back from the journal.
      notes.push(JSON.parse(JSON.stringify(note)));
    },
  };
  return { context, notes, timeUp: () => stop.abort() };
}

/** Runs a command that has to have a result. */
export async function run<C extends Case>(kind: Extract<Kind, { case: C }>, context: Context): Promise<ResultOf<C>> {
  const result = await execute(handlers, create(ActionSchema, { kind }), context);
  return result?.kind.value as ResultOf<C>;
}

/** Runs a command that has to fail, and returns the name of its error. */
export async function failure(kind: Kind, context: Context): Promise<string> {
  try {
    await execute(handlers, create(ActionSchema, { kind }), context);
  } catch (error) {
    return error instanceof CommandFailure ? ErrorCode[error.code] : String(error);
  }
  return "no failure";
}

/** Items in short: native id and status. */
export function short(items: readonly ItemOutcome[]): string[] {
  return items.map(({ id, status }) => `${id.slice(id.lastIndexOf("-") + 1)} ${ItemStatus[status]}`);
}
