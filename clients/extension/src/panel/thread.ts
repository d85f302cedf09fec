/** What the panel shows of a conversation, made from its events one by one. */
import {
  type ChildChanged,
  type Event,
  type Message,
  Outcome,
  type QueuedMessage,
  Role,
  Speaker,
  type ToolResult,
  TurnEnd,
} from "@throwbar/es/pb/agent";
import { type Known, learn, nothingKnown } from "./activity.js";
import { type Status, statusOf } from "./agent.js";

export type Line =
  | PersonLine
  | { readonly kind: "agent"; readonly text: string; readonly done: boolean }
  | { readonly kind: "reasoning"; readonly text: string }
  | ToolLine
  | ApprovalLine
  | OtherLine
  | ChildLine
  | NoticeLine
  | { readonly kind: "error"; readonly text: string };

export interface PersonLine {
  readonly kind: "person";
  readonly text: string;
  readonly sent: boolean;
  readonly messageId: string;
}

/** What another agent says. Only the server can say that it does. */
export interface OtherLine {
  readonly kind: "other";
  readonly text: string;
  readonly conversationId: string;
  readonly handle: string;
  readonly title: string;
}

/** An agent that this conversation has started. */
export interface ChildLine {
  readonly kind: "child";
  readonly conversationId: string;
  readonly handle: string;
  readonly agent: string;
  readonly status: Status;
}

export interface NoticeLine {
  readonly kind: "notice";
  readonly text: string;
  /** Whether saying "go on" goes on from here. */
  readonly goOn: boolean;
}

/** A message that waits for the end of the turn. */
export interface Queued {
  readonly messageId: string;
  readonly text: string;
  /** Handle of the conversation whose agent says it; empty for a person. */
  readonly from: string;
}

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
  /** How many bytes the whole answer has, where the model was told only a part; else zero. */
  readonly wholeBytes: number;
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
  /** The conversation of the agent that asks, where this one has started it; else empty. */
  readonly child: string;
}

export interface Thread {
  readonly conversationId: string;
  readonly running: boolean;
  readonly lines: readonly Line[];
  /** The last stored event that is in it. */
  readonly sequence: bigint;
  /** What its results have said of ids. */
  readonly known: Known;
  /** What waits for the end of the turn, the next one first. */
  readonly queue: readonly Queued[];
  /** Whether the next piece of text, or of reasoning, is all of it that there is by now. */
  readonly joined: { readonly text: boolean; readonly reasoning: boolean };
}

const inStep = { text: false, reasoning: false };

export const emptyThread: Thread = {
  conversationId: "",
  running: false,
  lines: [],
  sequence: 0n,
  known: nothingKnown,
  queue: [],
  joined: inStep,
};

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
export function withMessage(thread: Thread, text: string, messageId: string): Thread {
  return { ...thread, running: true, lines: [...thread.lines, { kind: "person", text, sent: false, messageId }] };
}

/** Without a message that did not get through. */
export function withoutUnsent(thread: Thread): Thread {
  const lines = thread.lines.filter((line) => line.kind !== "person" || line.sent);
  return lines.length === thread.lines.length ? thread : { ...thread, lines };
}

/** A message has got through: it is there, or waits. */
export function withSent(thread: Thread, messageId: string, waits: boolean): Thread {
  const at = thread.lines.findLastIndex((line) => line.kind === "person" && line.messageId === messageId);
  const line = thread.lines[at];
  if (line?.kind !== "person" || line.sent) {
    return thread;
  }
  return { ...thread, lines: waits ? thread.lines.toSpliced(at, 1) : thread.lines.with(at, { ...line, sent: true }) };
}

/** The conversation is followed anew: of what is being written, the next piece has all of it. */
export function joining(thread: Thread): Thread {
  return { ...thread, joined: { text: true, reasoning: true } };
}

/** The server says what the conversation does; it is right. */
export function withStatus(thread: Thread, status: Status): Thread {
  const running = status === "running" || status === "waiting";
  return running === thread.running
    ? thread
    : { ...thread, running, lines: running ? thread.lines : thread.lines.map(settled) };
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
      return { ...thread, running: true, joined: inStep };
    case "textDelta":
      return grow(thread, "agent", kind.value.text);
    case "reasoningDelta":
      return grow(thread, "reasoning", kind.value.text);
    case "toolCall": {
      const { callId, name, repairs } = kind.value;
      const call = { callId, name, repairs, arguments: kind.value.arguments };
      return add(concluded(thread), { kind: "tool", ...call, outcome: "running", content: "", wholeBytes: 0 });
    }
    case "toolResult":
      return withResult(thread, kind.value);
    case "approvalRequested": {
      const { callId, approvalId, name, reason } = kind.value;
      const waiting = withTool(thread, callId, { outcome: "waiting" });
      return add(waiting, asking(callId, approvalId, name, reason));
    }
    case "approvalResolved":
      return withDecision(thread, kind.value.approvalId, kind.value.state, kind.value.reason);
    case "message":
      return kind.value.role === Role.USER ? withSaid(thread, kind.value) : withAnswer(thread, kind.value.text);
    case "error":
      return add(thread, { kind: "error", text: kind.value.message });
    case "turnEnded":
      return ended(thread, kind.value.reason);
    case "turnResumed": // what was being written is written anew
      return add(joining(thread), notice("The server was started again, and the turn goes on."));
    case "childChanged":
      return withChild(thread, kind.value);
    case "queued":
    case "queueEdited":
    case "queueRemoved":
      return withQueue(thread, kind);
    default: {
      const notice = noticeOf(kind);
      return notice === undefined ? thread : add(thread, notice);
    }
  }
}

type Kind = Event["kind"];

const notice = (text: string, goOn = false): NoticeLine => ({ kind: "notice", text, goOn });

/** What a person should know; nothing for usage, and for kinds of a newer server. */
function noticeOf(kind: Kind): NoticeLine | undefined {
  switch (kind.case) {
    case "notice":
      return notice(kind.value.text, kind.value.canContinue);
    case "modelChanged":
      return notice(`${kind.value.from} did not answer (${kind.value.reason}): ${kind.value.to} is asked.`);
    case "compacted": {
      const [before, after] = [kind.value.beforeTokens, kind.value.afterTokens].map((n) =>
        Number(n).toLocaleString("en"),
      );
      return notice(`What was said long ago was made shorter for the model: ${before} tokens became ${after}.`);
    }
    case "conversationChanged":
      return kind.value.archived ? notice("This conversation was archived. Nothing can be said in it.") : undefined;
    default:
      return undefined;
  }
}

function withQueue(thread: Thread, kind: Kind): Thread {
  const others = (id: string) => thread.queue.filter(({ messageId }) => messageId !== id);
  switch (kind.case) {
    case "queued":
      return { ...thread, queue: [...others(kind.value.messageId), queuedOf(kind.value)] };
    case "queueEdited":
      return {
        ...thread,
        queue: thread.queue.map((each) => (each.messageId === kind.value.messageId ? queuedOf(kind.value) : each)),
      };
    case "queueRemoved":
      return { ...thread, queue: others(kind.value.messageId) };
    default:
      return thread;
  }
}

const queuedOf = ({ messageId, text, sender }: QueuedMessage): Queued => ({
  messageId,
  text,
  from: sender?.speaker === Speaker.AGENT ? sender.handle || "another agent" : "",
});

function withChild(thread: Thread, child: ChildChanged): Thread {
  const { conversationId, handle, agent, approvalId } = child;
  const line: ChildLine = { kind: "child", conversationId, handle, agent, status: statusOf(child.status) };
  const at = thread.lines.findLastIndex((each) => each.kind === "child" && each.conversationId === conversationId);
  // What it waited for is decided, in whatever way: the inbox knows how.
  const lines = thread.lines.map((each) =>
    each.kind === "approval" &&
    each.child === conversationId &&
    each.approvalId !== approvalId &&
    each.state === "pending"
      ? { ...each, state: "resolved" }
      : each,
  );
  const next = { ...thread, lines: at < 0 ? [...lines, line] : lines.with(at, line) };
  const known = lines.some((each) => each.kind === "approval" && each.approvalId === approvalId);
  return approvalId === "" || known ? next : add(next, asking("", approvalId, agent, "", conversationId));
}

const asking = (callId: string, approvalId: string, name: string, why: string, child = ""): ApprovalLine => ({
  kind: "approval",
  callId,
  approvalId,
  name,
  why,
  state: "pending",
  said: "",
  child,
});

/** What was being written is whole. */
const concluded = (thread: Thread): Thread => (thread.joined === inStep ? thread : { ...thread, joined: inStep });

function add(thread: Thread, line: Line): Thread {
  return { ...thread, lines: [...thread.lines, line] };
}

const underWay = (line: Line): boolean => line.kind === "agent" && !line.done;

/** A piece of what is being written. After a new beginning it is all of it, and takes the place of what was shown. */
function grow(thread: Thread, kind: "agent" | "reasoning", text: string): Thread {
  const { lines } = thread;
  const whole = kind === "agent" ? thread.joined.text : thread.joined.reasoning;
  const joined = whole ? { ...thread.joined, [kind === "agent" ? "text" : "reasoning"]: false } : thread.joined;
  const at = kind === "agent" ? lines.findLastIndex(underWay) : lines.findLastIndex((line) => !underWay(line));
  const line = lines[at];
  if (line?.kind !== kind || (kind === "reasoning" && !whole && at < lines.length - 1)) {
    return { ...add(thread, kind === "agent" ? { kind, text, done: false } : { kind, text }), joined };
  }
  return { ...thread, joined, lines: lines.with(at, { ...line, text: whole ? text : line.text + text }) };
}

/** The whole text replaces what came in pieces: pieces may have been missed. */
function withAnswer(thread: Thread, text: string): Thread {
  const line: Line = { kind: "agent", text, done: true };
  const at = thread.lines.findLastIndex(underWay);
  const lines = at < 0 ? [...thread.lines, line] : thread.lines.with(at, line);
  return { ...concluded(thread), lines };
}

/** What is said to the agent: by a person, here or elsewhere, or by another agent. It waits no more. */
function withSaid(thread: Thread, { text, messageId, sender }: Message): Thread {
  const queue = thread.queue.filter((each) => messageId === "" || each.messageId !== messageId);
  const next = queue.length === thread.queue.length ? thread : { ...thread, queue };
  if (sender?.speaker === Speaker.AGENT) {
    const { conversationId, handle, title } = sender;
    return add(next, { kind: "other", text, conversationId, handle, title });
  }
  const line: Line = { kind: "person", text, sent: true, messageId };
  const at = next.lines.findIndex(
    (each) =>
      each.kind === "person" && (messageId === "" ? !each.sent && each.text === text : each.messageId === messageId),
  );
  return at < 0 ? add(next, line) : { ...next, lines: next.lines.with(at, line) };
}

function withTool(thread: Thread, callId: string, change: Partial<ToolLine>): Thread {
  const at = thread.lines.findLastIndex((line) => line.kind === "tool" && line.callId === callId);
  const line = thread.lines[at];
  return line?.kind === "tool" ? { ...thread, lines: thread.lines.with(at, { ...line, ...change }) } : thread;
}

function withResult(thread: Thread, { callId, outcome, content, wholeBytes }: ToolResult): Thread {
  const change = { outcome: outcomes[outcome], content, wholeBytes: Number(wholeBytes) };
  return { ...withTool(thread, callId, change), known: learn(thread.known, content) };
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
  const told = text === undefined ? lines : [...lines, notice(text, reason === TurnEnd.LIMIT)];
  return { ...concluded(thread), running: false, lines: told };
}

/** A line of a turn that has ended: nothing of it waits any more. One that is settled stays the same object. */
function settled(line: Line): Line {
  switch (line.kind) {
    case "agent":
      return line.done ? line : { ...line, done: true };
    case "approval":
      // An agent that was started may go on, and still wait.
      return line.state === "pending" && line.child === "" ? { ...line, state: "withdrawn" } : line;
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
