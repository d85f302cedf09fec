import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Event, EventSchema, Outcome, Role, TurnEnd } from "@throwbar/es/pb/agent";
import { expect, test } from "vitest";
import { emptyThread, joining, type Thread, withEvent, withMessage } from "../src/panel/thread.js";

type Kind = NonNullable<MessageInitShape<typeof EventSchema>["kind"]>;

function event(kind: Kind, sequence = 0): Event {
  return create(EventSchema, { kind, sequence: BigInt(sequence), conversationId: "conv" });
}

const delta = (text: string) => event({ case: "textDelta", value: { text } });
const follow = (thread: Thread, ...events: Event[]) => events.reduce(withEvent, thread);

test("a turn: what is sent, streamed, called and answered", () => {
  const sent = withMessage(emptyThread, "hi", "m1");
  expect(sent).toMatchObject({ running: true, lines: [{ kind: "person", text: "hi", sent: false, messageId: "m1" }] });
  const thread = follow(
    sent,
    event({ case: "message", value: { role: Role.USER, text: "hi", messageId: "m1" } }, 1),
    event({ case: "turnStarted", value: { model: "m" } }, 2),
    event({ case: "reasoningDelta", value: { text: "hm" } }),
    event({ case: "reasoningDelta", value: { text: "m" } }),
    delta("I "),
    delta("look"),
    event({ case: "message", value: { role: Role.ASSISTANT, text: "I look." } }, 3),
    event({ case: "toolCall", value: { callId: "c", name: "listTabs", arguments: "{}", repairs: ["x"] } }, 4),
    event({ case: "toolResult", value: { callId: "c", name: "listTabs", outcome: Outcome.DENIED, content: "no" } }, 5),
    delta("No."),
    event({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } }, 6),
  );
  expect(thread).toMatchObject({ conversationId: "conv", running: false, sequence: 6n });
  expect(thread.lines).toEqual([
    { kind: "person", text: "hi", sent: true, messageId: "m1" },
    { kind: "reasoning", text: "hmm" },
    { kind: "agent", text: "I look.", done: true },
    {
      kind: "tool",
      callId: "c",
      name: "listTabs",
      arguments: "{}",
      repairs: ["x"],
      outcome: "denied",
      content: "no",
      wholeBytes: 0,
    },
    { kind: "agent", text: "No.", done: true },
  ]);
});

test("an event that is in already changes nothing", () => {
  const once = follow(emptyThread, event({ case: "notice", value: { code: "x", text: "once" } }, 3));
  expect(follow(once, event({ case: "notice", value: { code: "x", text: "once" } }, 3))).toBe(once);
  expect(follow(once, event({ case: "notice", value: { code: "x", text: "older" } }, 2))).toBe(once);
});

test.each([
  [TurnEnd.STOPPED, "Stopped."],
  [TurnEnd.LIMIT, "A limit was reached. Send a message to go on."],
])("an end for the reason %s is said", (reason, text) => {
  const thread = follow(emptyThread, event({ case: "turnEnded", value: { reason } }, 1));
  expect(thread.lines).toEqual([{ kind: "notice", text, goOn: reason === TurnEnd.LIMIT }]);
  const told = follow(
    emptyThread,
    event({ case: "notice", value: { code: "x", text: "in the server's words" } }, 1),
    event({ case: "turnEnded", value: { reason } }, 2),
  );
  expect(told.lines).toEqual([{ kind: "notice", text: "in the server's words", goOn: false }]);
});

test("an error is shown, and messages that this panel did not send, too", () => {
  const thread = follow(
    emptyThread,
    event({ case: "message", value: { role: Role.USER, text: "from elsewhere" } }, 1),
    event({ case: "error", value: { message: "no model" } }, 2),
    event({ case: "usage", value: { inputTokens: 3n } }, 3),
    create(EventSchema, { sequence: 4n }),
  );
  expect(thread.lines).toEqual([
    { kind: "person", text: "from elsewhere", sent: true, messageId: "" },
    { kind: "error", text: "no model" },
  ]);
  expect(thread).toMatchObject({ conversationId: "conv", sequence: 4n });
});

test("who speaks is the server's word: another agent's message is a line of its own, and waits no more", () => {
  const sender = { speaker: 2, conversationId: "other", handle: "9ab1", title: "News" };
  const waiting = follow(
    emptyThread,
    event({ case: "queued", value: { messageId: "q", text: "look", sender } }, 1),
    event({ case: "queued", value: { messageId: "p", text: "mine" } }, 2),
  );
  expect(waiting.queue).toEqual([
    { messageId: "q", text: "look", from: "9ab1" },
    { messageId: "p", text: "mine", from: "" },
  ]);
  const read = follow(
    waiting,
    event({ case: "message", value: { role: Role.USER, text: "look", messageId: "q", sender } }, 3),
  );
  expect(read.queue.map(({ messageId }) => messageId)).toEqual(["p"]);
  expect(read.lines).toEqual([{ kind: "other", text: "look", conversationId: "other", handle: "9ab1", title: "News" }]);
});

test("an agent that was started is one line that changes; what it asks is asked here until it is decided", () => {
  const child = (status: number, approvalId: string, sequence: number) =>
    event(
      { case: "childChanged", value: { conversationId: "c", handle: "c1d2", agent: "reader", status, approvalId } },
      sequence,
    );
  const asking = follow(emptyThread, child(2, "", 1), child(3, "ap", 2), child(3, "ap", 3));
  expect(asking.lines).toMatchObject([
    { kind: "child", status: "waiting", handle: "c1d2" },
    { kind: "approval", approvalId: "ap", state: "pending", child: "c" },
  ]);
  // The turn here may end while the agent goes on.
  const over = follow(asking, event({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } }, 4));
  expect(over.lines[1]).toMatchObject({ state: "pending" });
  expect(follow(over, child(1, "", 5)).lines).toMatchObject([{ status: "idle" }, { state: "resolved" }]);
});

test("whoever joins in the middle has all pieces once", () => {
  const before = follow(emptyThread, event({ case: "turnStarted", value: {} }, 1), delta("one "), delta("two"));
  const joined = follow(joining(before), delta("one two three"), delta(" four"));
  expect(joined.lines).toEqual([{ kind: "agent", text: "one two three four", done: false }]);
  // A message that became whole meanwhile ends what is shown of it; the next one begins anew.
  const later = follow(
    joining(before),
    event({ case: "message", value: { role: Role.ASSISTANT, text: "one two three" } }, 2),
    delta("next"),
  );
  expect(later.lines.map((line) => "text" in line && line.text)).toEqual(["one two three", "next"]);
});

test("what one should know of the model is said, and what is for programs is not", () => {
  const thread = follow(
    emptyThread,
    event({ case: "modelChanged", value: { from: "small", to: "big", reason: "429" } }, 1),
    event({ case: "compacted", value: { beforeTokens: 45123n, afterTokens: 9000n } }, 2),
    event({ case: "turnResumed", value: {} }, 3),
    event({ case: "notice", value: { code: "wakes_exhausted", text: "held", canContinue: true } }, 4),
    event({ case: "conversationChanged", value: { title: "x" } }, 5),
  );
  expect(thread.lines).toMatchObject([
    { text: "small did not answer (429): big is asked." },
    { text: "What was said long ago was made shorter for the model: 45,123 tokens became 9,000." },
    { text: "The server was started again, and the turn goes on." },
    { text: "held", goOn: true },
  ]);
});
