/** Outcomes of single targets. */
import { create } from "@bufbuild/protobuf";
import { type ItemOutcome, ItemOutcomeSchema, ItemStatus } from "@throwbar/es/pb/state";
import { BrowserError, type BrowserErrorKind } from "../platform/port.js";
import { NotBegun, OutOfTime } from "./deadline.js";

export function item(id: string, status: ItemStatus, detail = "", newId = ""): ItemOutcome {
  return create(ItemOutcomeSchema, { id, status, detail, newId });
}

/** The browser took the call, and the target is as it was. */
export const unchanged = (id: string, newId = "") =>
  item(id, ItemStatus.UNSPECIFIED, "the browser left it as it was", newId);

export const otherPrivacy = "the browser lets no tab go between private windows and others";

export const notFound = (id: string): ItemOutcome => item(id, ItemStatus.NOT_FOUND);

const statuses: Record<BrowserErrorKind, ItemStatus> = {
  noTab: ItemStatus.NOT_FOUND,
  noWindow: ItemStatus.WINDOW_GONE,
  noGroup: ItemStatus.UNSPECIFIED,
  busy: ItemStatus.BUSY,
  unsupportedWindow: ItemStatus.UNSUPPORTED_WINDOW,
  refusedUrl: ItemStatus.REFUSED_URL,
  splitsGroup: ItemStatus.UNSPECIFIED,
  other: ItemStatus.UNSPECIFIED,
};

/** What a target's outcome is when the browser refused, or did not answer in time. */
export function failedItem(id: string, error: unknown): ItemOutcome {
  if (error instanceof NotBegun) {
    return item(id, ItemStatus.SKIPPED, "left as it was: there was no time for it any more");
  }
  if (error instanceof OutOfTime) {
    return item(id, ItemStatus.UNKNOWN_OUTCOME, "the browser did not answer in time");
  }
  if (error instanceof BrowserError) {
    const status = statuses[error.kind];
    return item(id, status, status === ItemStatus.NOT_FOUND ? "" : error.message);
  }
  return item(id, ItemStatus.UNSPECIFIED, error instanceof Error ? error.message : String(error));
}

export function countOk(items: readonly ItemOutcome[]): number {
  return items.filter(({ status }) => status === ItemStatus.OK).length;
}
