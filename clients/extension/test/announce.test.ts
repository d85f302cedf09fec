import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { EventSchema, Outcome, Role, TurnEnd } from "@throwbar/es/pb/agent";
import { expect, test } from "vitest";
import { Announcer } from "../src/panel/announce.js";
import { emptyThread, type Thread, withEvent, withMessage } from "../src/panel/thread.js";

type Kind = NonNullable<MessageInitShape<typeof EventSchema>["kind"]>;

/** A reader who hears each state of a thread. */
class Reader {
  readonly announcer = new Announcer();
  thread: Thread = emptyThread;
  readonly polite: string[] = [];
  readonly assertive: string[] = [];

  hear(kind: Kind): void {
    this.thread = withEvent(this.thread, create(EventSchema, { kind, conversationId: "conv" }));
    const news = this.announcer.next(this.thread);
    this.polite.push(...news.polite);
    this.assertive.push(...news.assertive);
  }
}

const text = (value: string): Kind => ({ case: "textDelta", value: { text: value } });

test("text is said in whole sentences, and the rest when it is complete; never twice", () => {
  const reader = new Reader();
  reader.thread = withMessage(emptyThread, "hi", "m1");
  for (const piece of ["I loo", "k. There ", "are 3.5 tabs", "\nand", " more"]) {
    reader.hear(text(piece));
  }
  expect(reader.polite).toEqual(["I look.", "There are 3.5 tabs"]);
  reader.hear({ case: "message", value: { role: Role.ASSISTANT, text: "I look. There are 3.5 tabs\nand more" } });
  reader.hear({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
  expect(reader.polite).toEqual(["I look.", "There are 3.5 tabs", "and more"]);
  expect(reader.assertive).toEqual([]);
});

test("a tool is said when it has ended, an approval at once", () => {
  const reader = new Reader();
  reader.hear({ case: "toolCall", value: { callId: "c", name: "closeTabs", arguments: "{}" } });
  reader.hear({
    case: "approvalRequested",
    value: { callId: "c", approvalId: "a", name: "closeTabs", reason: "it is much" },
  });
  expect(reader.polite).toEqual([]);
  expect(reader.assertive).toEqual(["Close tabs waits for your approval. it is much"]);
  reader.hear({ case: "approvalResolved", value: { callId: "c", approvalId: "a", state: "approved" } });
  const content = '{"mark":"m","data":{"deviceName":"laptop","closedCount":2},"end":"m"}';
  reader.hear({ case: "toolResult", value: { callId: "c", outcome: Outcome.SUCCEEDED, content } });
  reader.hear({ case: "error", value: { message: "no model" } });
  expect(reader.polite).toEqual(["Close tabs on laptop, 2 closed: succeeded", "no model"]);
  expect(reader.assertive).toHaveLength(1);
});

test("what was there before a conversation is opened is not read out, nor is another one's", () => {
  const reader = new Reader();
  reader.thread = withEvent(emptyThread, create(EventSchema, { kind: text("Old. "), conversationId: "conv" }));
  reader.announcer.skip(reader.thread);
  reader.hear({ case: "notice", value: { code: "x", text: "new" } });
  expect(reader.polite).toEqual(["new"]);
  const other = { ...reader.thread, conversationId: "other" };
  expect(reader.announcer.next(other).polite).toEqual([]);
});
