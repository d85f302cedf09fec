/** Going on with closing tabs after the worker was stopped in the middle of it. */
import { ItemStatus } from "@throwbar/es/pb/state";
import { type Closed, type CloseOutcome, type Closing, closeTabsOnce, stillOpen } from "./closing.js";
import type { Recovery } from "./context.js";

export type { Closed } from "./closing.js";

/**
 * What is closed was closed. What was asked and is still open is not asked again: its page may be asking the person. What was not
 * asked yet is closed now, and with force what is still open as well: exactly these tabs were approved for that. Both only while
 * the command may still run.
 */
export async function goOn(recovery: Recovery, tabs: readonly Closing[], force: boolean): Promise<Closed> {
  const { asked, current } = recovery;
  await asked.ready;
  const open = await stillOpen(
    recovery,
    tabs.map(({ id }) => id),
  );
  const rest = tabs.filter(({ id }) => open.has(id) && (force || !asked.has(current(id))));
  const more = rest.length > 0 && (await mayGoOn(recovery)) ? await closeTabsOnce(recovery, rest, force) : undefined;
  const of = ({ id }: Closing): CloseOutcome =>
    more?.outcomes.get(id) ??
    (open.has(id)
      ? {
          status: ItemStatus.UNKNOWN_OUTCOME,
          detail: "still open after the extension was stopped; not tried again",
        }
      : { status: ItemStatus.OK, detail: "" });
  return { outcomes: new Map(tabs.map((each) => [each.id, of(each)])), openedTabs: more?.openedTabs ?? [] };
}

async function mayGoOn(recovery: Recovery): Promise<boolean> {
  try {
    await recovery.begin(recovery.note);
    return true;
  } catch {
    return false; // its time is over, or it was cancelled
  }
}
