import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Event, EventSchema, Outcome, Role, TurnEnd } from "@throwbar/es/pb/agent";
import { expect, test } from "vitest";
import { emptyThread, type Thread, withEvent, withMessage } from "../src/panel/thread.js";

type Kind = NonNullable<MessageInitShape<typeof EventSchema>["kind"]>;

function event(kind: Kind, sequence = 0): Event {
  return create(EventSchema, { kind, sequence: BigInt(sequence), conversationId: "conv" });
}

const delta = (text: string) => event({ case: "textDelta", value: { text } });
const follow = (thread: Thread, ...events: Event[]) => events.reduce(withEvent, thread);

test("a turn: what is sent, streamed, called and answered", () => {
  const sent = withMessage(emptyThread, "hi");
  expect(sent).toMatchObject({ running: true, lines: [{ kind: "person", text: "hi", sent: false }] });
  const thread = follow(
    sent,
    event({ case: "message", value: { role: Role.USER, text: "hi" } }, 1),
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
    { kind: "person", text: "hi", sent: true },
    { kind: "reasoning", text: "hmm" },
    { kind: "agent", text: "I look.", done: true },
    { kind: "tool", callId: "c", name: "listTabs", arguments: "{}", repairs: ["x"], outcome: "denied", content: "no" },
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
  expect(thread.lines).toEqual([{ kind: "notice", text }]);
  const told = follow(
    emptyThread,
    event({ case: "notice", value: { code: "x", text: "in the server's words" } }, 1),
    event({ case: "turnEnded", value: { reason } }, 2),
  );
  expect(told.lines).toEqual([{ kind: "notice", text: "in the server's words" }]);
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
    { kind: "person", text: "from elsewhere", sent: true },
    { kind: "error", text: "no model" },
  ]);
  expect(thread).toMatchObject({ conversationId: "conv", sequence: 4n });
});
