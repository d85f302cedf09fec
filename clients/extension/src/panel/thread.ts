/** What the panel shows of a conversation, made from its events one by one. */
import { type Event, Outcome, Role, TurnEnd } from "@throwbar/es/pb/agent";
import { type Known, learn, nothingKnown } from "./activity.js";

export type Line =
  | { readonly kind: "person"; readonly text: string; readonly sent: boolean }
  | { readonly kind: "agent"; readonly text: string; readonly done: boolean }
  | { readonly kind: "reasoning"; readonly text: string }
  | ToolLine
  | ApprovalLine
  | { readonly kind: "notice"; readonly text: string }
  | { readonly kind: "error"; readonly text: string };

export interface ToolLine {
  readonly kind: "tool";
  readonly callId: string;
  readonly name: string;
  readonly arguments: string;
  readonly repairs: readonly string[];
  /** waiting: for a person. stopped: the turn ended before there was an answer. */
  readonly outcome: "running" | "waiting" | "stopped" | "succeeded" | "failed" | "denied";
  /** What the model was told. */
  readonly content: string;
}

/** A call that waits for a person, or waited. */
export interface ApprovalLine {
  readonly kind: "approval";
  readonly callId: string;
  readonly approvalId: string;
  readonly name: string;
  readonly why: string;
  /** pending, or how it ended. */
  readonly state: string;
  /** What whoever decided said. */
  readonly said: string;
}

export interface Thread {
  readonly conversationId: string;
  readonly running: boolean;
  readonly lines: readonly Line[];
  /** The last stored event that is in it. */
  readonly sequence: bigint;
  /** What its results have said of ids. */
  readonly known: Known;
}

export const emptyThread: Thread = { conversationId: "", running: false, lines: [], sequence: 0n, known: nothingKnown };

const outcomes: Record<Outcome, ToolLine["outcome"]> = {
  [Outcome.UNSPECIFIED]: "failed",
  [Outcome.SUCCEEDED]: "succeeded",
  [Outcome.FAILED]: "failed",
  [Outcome.DENIED]: "denied",
};

const endings: Partial<Record<TurnEnd, string>> = {
  [TurnEnd.STOPPED]: "Stopped.",
  [TurnEnd.LIMIT]: "A limit was reached. Send a message to go on.",
};

/** What a person has just sent, before the server says so. */
export function withMessage(thread: Thread, text: string): Thread {
  return { ...thread, running: true, lines: [...thread.lines, { kind: "person", text, sent: false }] };
}

/** Without a message that did not get through. */
export function withoutUnsent(thread: Thread): Thread {
  const lines = thread.lines.filter((line) => line.kind !== "person" || line.sent);
  return lines.length === thread.lines.length ? thread : { ...thread, lines };
}

/** Takes an event in. One that is in already changes nothing. */
export function withEvent(thread: Thread, event: Event): Thread {
  if (event.sequence > 0n && event.sequence <= thread.sequence) {
    return thread;
  }
  const next = take(thread, event);
  return {
    ...next,
    conversationId: event.conversationId || thread.conversationId,
    sequence: event.sequence || thread.sequence,
  };
}

function take(thread: Thread, { kind }: Event): Thread {
  switch (kind.case) {
    case "turnStarted":
      return { ...thread, running: true };
    case "textDelta":
      return grow(thread, "agent", kind.value.text);
    case "reasoningDelta":
      return grow(thread, "reasoning", kind.value.text);
    case "toolCall": {
      const { callId, name, repairs } = kind.value;
      const call = { callId, name, repairs, arguments: kind.value.arguments };
      return add(thread, { kind: "tool", ...call, outcome: "running", content: "" });
    }
    case "toolResult":
      return withResult(thread, kind.value.callId, outcomes[kind.value.outcome], kind.value.content);
    case "approvalRequested": {
      const { callId, approvalId, name, reason } = kind.value;
      const waiting = withTool(thread, callId, { outcome: "waiting" });
      return add(waiting, { kind: "approval", callId, approvalId, name, why: reason, state: "pending", said: "" });
    }
    case "approvalResolved":
      return withDecision(thread, kind.value.approvalId, kind.value.state, kind.value.reason);
    case "message":
      return kind.value.role === Role.USER ? withPerson(thread, kind.value.text) : withAnswer(thread, kind.value.text);
    case "notice":
      return add(thread, { kind: "notice", text: kind.value.text });
    case "error":
      return add(thread, { kind: "error", text: kind.value.message });
    case "turnEnded":
      return ended(thread, kind.value.reason);
    default: // usage, and kinds of a newer server
      return thread;
  }
}

function add(thread: Thread, line: Line): Thread {
  return { ...thread, lines: [...thread.lines, line] };
}

function replaceLast(thread: Thread, line: Line): Thread {
  return { ...thread, lines: [...thread.lines.slice(0, -1), line] };
}

function grow(thread: Thread, kind: "agent" | "reasoning", text: string): Thread {
  const last = thread.lines.at(-1);
  if (last?.kind === "agent" && kind === "agent" && !last.done) {
    return replaceLast(thread, { ...last, text: last.text + text });
  }
  if (last?.kind === "reasoning" && kind === "reasoning") {
    return replaceLast(thread, { ...last, text: last.text + text });
  }
  return add(thread, kind === "agent" ? { kind, text, done: false } : { kind, text });
}

/** The whole text replaces what came in pieces: pieces may have been missed. */
function withAnswer(thread: Thread, text: string): Thread {
  const line: Line = { kind: "agent", text, done: true };
  const at = thread.lines.findLastIndex((each) => each.kind === "agent" && !each.done);
  return at < 0 ? add(thread, line) : { ...thread, lines: thread.lines.with(at, line) };
}

function withPerson(thread: Thread, text: string): Thread {
  const line: Line = { kind: "person", text, sent: true };
  const at = thread.lines.findIndex((each) => each.kind === "person" && !each.sent && each.text === text);
  return at < 0 ? add(thread, line) : { ...thread, lines: thread.lines.with(at, line) };
}

function withTool(thread: Thread, callId: string, change: Partial<ToolLine>): Thread {
  const at = thread.lines.findLastIndex((line) => line.kind === "tool" && line.callId === callId);
  const line = thread.lines[at];
  return line?.kind === "tool" ? { ...thread, lines: thread.lines.with(at, { ...line, ...change }) } : thread;
}

function withResult(thread: Thread, callId: string, outcome: ToolLine["outcome"], content: string): Thread {
  return { ...withTool(thread, callId, { outcome, content }), known: learn(thread.known, content) };
}

function withDecision(thread: Thread, approvalId: string, state: string, said: string): Thread {
  const at = thread.lines.findLastIndex((line) => line.kind === "approval" && line.approvalId === approvalId);
  const line = thread.lines[at];
  if (line?.kind !== "approval") {
    return thread;
  }
  const resumed = withTool(thread, line.callId, { outcome: "running" });
  return { ...resumed, lines: resumed.lines.with(at, { ...line, state, said }) };
}

function ended(thread: Thread, reason: TurnEnd): Thread {
  const lines = thread.lines.map((line) => settled(line));
  // Where the server has said why in its own words, they are enough.
  const text = lines.at(-1)?.kind === "notice" ? undefined : endings[reason];
  return { ...thread, running: false, lines: text === undefined ? lines : [...lines, { kind: "notice", text }] };
}

/** A line of a turn that has ended: nothing of it waits any more. One that is settled stays the same object. */
function settled(line: Line): Line {
  switch (line.kind) {
    case "agent":
      return line.done ? line : { ...line, done: true };
    case "approval":
      return line.state === "pending" ? { ...line, state: "withdrawn" } : line;
    case "tool":
      return line.outcome === "running" || line.outcome === "waiting" ? { ...line, outcome: "stopped" } : line;
    default:
      return line;
  }
}

/** What a tool answered, without the marks that fence data for the model; what has none as it is. */
export function unfenced(content: string): string {
  try {
    const fence = JSON.parse(content) as { mark?: unknown; data?: unknown; error?: unknown; end?: unknown };
    if (typeof fence.mark === "string" && fence.mark === fence.end) {
      return JSON.stringify(fence.error ?? fence.data, undefined, 1);
    }
  } catch {
    // no JSON: shown as it is
  }
  return content;
}
