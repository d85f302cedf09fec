/** The contract's own names as a person reads them. A member that is added to it does not compile until it has words. */
import { ErrorCode } from "@throwbar/es/pb/command";
import { ItemStatus } from "@throwbar/es/pb/state";
import type { Status } from "./agent.js";
import { short } from "./text.js";

/** What a conversation does. */
export const statusWords: Record<Status, string> = {
  idle: "idle",
  running: "running",
  waiting: "waits for a person",
  failed: "the last turn failed",
};

/** A name that the contract does not have comes from a model or a newer server: one line of what can be seen. */
const maxName = 60;

/** closeTabsByUrl becomes "Close tabs by URL". */
export function spoken(name: string): string {
  const words = short(name, maxName)
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replaceAll(/[._]+/g, " ")
    .toLowerCase()
    .replace(/\b(url|id)(s?)\b/g, (_, word: string, many: string) => word.toUpperCase() + many);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const itemWords: Record<ItemStatus, string> = {
  [ItemStatus.UNSPECIFIED]: "not stated",
  [ItemStatus.OK]: "done",
  [ItemStatus.NOT_FOUND]: "not there any more",
  [ItemStatus.REPLACED]: "done, under a new id",
  [ItemStatus.BLOCKED_BY_PAGE]: "blocked by the page",
  [ItemStatus.REFUSED_URL]: "refused because of the address",
  [ItemStatus.UNSUPPORTED_WINDOW]: "in a window that cannot do this",
  [ItemStatus.WINDOW_GONE]: "in a window that is gone",
  [ItemStatus.BUSY]: "busy in the browser",
  [ItemStatus.UNKNOWN_OUTCOME]: "started, and nobody knows how it ended",
  [ItemStatus.SKIPPED]: "left alone",
};

interface ErrorWords {
  readonly title: string;
  /** What it means and what to do; added to what the server says. */
  readonly advice: string;
}

const errorWords: Record<ErrorCode, ErrorWords> = {
  [ErrorCode.UNSPECIFIED]: { title: "failed", advice: "" },
  [ErrorCode.OFFLINE]: {
    title: "device offline",
    advice: "Nothing ran. Start the browser or program that is the device, and ask again.",
  },
  [ErrorCode.EXPIRED]: { title: "ran out of time", advice: "Nothing of it runs any more. Ask again." },
  [ErrorCode.CANCELLED]: { title: "cancelled", advice: "Whoever asked went away or took it back." },
  [ErrorCode.NOT_FOUND]: { title: "not found", advice: "It may have been closed meanwhile. Look again and retry." },
  [ErrorCode.UNSUPPORTED]: {
    title: "not supported",
    advice: "This device does not know the command. A newer version may.",
  },
  [ErrorCode.INVALID]: { title: "invalid arguments", advice: "Nothing ran: the arguments break a rule." },
  [ErrorCode.REFUSED]: { title: "refused", advice: "A rule of the device, or about addresses, forbids it." },
  [ErrorCode.DENIED]: { title: "denied", advice: "Nothing ran: a person or the policy said no." },
  [ErrorCode.APPROVAL_TIMED_OUT]: {
    title: "nobody decided in time",
    advice: "Nothing ran, and nobody said no. Ask again to be asked again.",
  },
  [ErrorCode.INTERRUPTED]: {
    title: "outcome unknown",
    advice: "The device began it and was cut off. Look at the device before you ask again.",
  },
  [ErrorCode.FAILED]: { title: "failed", advice: "The device tried and could not." },
  [ErrorCode.BUSY]: { title: "too much at once", advice: "Wait a moment and ask again." },
};

/** The short name of a value, as the agent writes it: lower case. */
const byShortName = <E extends number>(names: Record<number, string>, words: Record<E, unknown>): Map<string, E> =>
  new Map(Object.keys(words).map((number) => [names[Number(number)]?.toLowerCase() ?? "", Number(number) as E]));

const statuses = byShortName<ItemStatus>(ItemStatus as unknown as Record<number, string>, itemWords);
const codes = byShortName<ErrorCode>(ErrorCode as unknown as Record<number, string>, errorWords);

/** Words for a status by its number or its short name; a newer one is said as it is called. */
export function statusText(status: ItemStatus | string): string {
  const number = typeof status === "number" ? status : statuses.get(status);
  const known = number === undefined ? undefined : itemWords[number];
  return known ?? short(String(status), maxName).replaceAll("_", " ").toLowerCase();
}

/** Words for an error's short name. */
export function errorText(code: string): ErrorWords {
  const number = codes.get(code.toLowerCase());
  return number === undefined
    ? { title: short(code, maxName).replaceAll("_", " ").toLowerCase(), advice: "" }
    : errorWords[number];
}

export function counted(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/** How long, in the two largest units: "2 d 3 h", "4 min 05 s". */
export function duration(seconds: number): string {
  const left = Math.max(0, Math.floor(seconds));
  if (left >= day) {
    return `${Math.floor(left / day)} d ${Math.floor((left % day) / hour)} h`;
  }
  if (left >= hour) {
    return `${Math.floor(left / hour)} h ${Math.floor((left % hour) / minute)} min`;
  }
  return left >= minute ? `${Math.floor(left / minute)} min ${String(left % minute).padStart(2, "0")} s` : `${left} s`;
}

/** How long ago, roughly. */
export function ago(seconds: number): string {
  if (seconds < minute) {
    return "just now";
  }
  if (seconds < hour) {
    return `${Math.floor(seconds / minute)} min ago`;
  }
  return seconds < day ? `${Math.floor(seconds / hour)} h ago` : `${Math.floor(seconds / day)} d ago`;
}
