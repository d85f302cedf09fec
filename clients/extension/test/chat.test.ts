import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { EventSchema, Role, TurnEnd } from "@throwbar/es/pb/agent";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Chat, type Drafts } from "../src/panel/chat.js";
import { FakeAgent, conversation as row } from "./fake/agent.js";
import { FakeTogether } from "./fake/together.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function make(conversation = "", together = new FakeTogether()) {
  const agent = new FakeAgent();
  const kept: string[] = [];
  const drafts: Drafts[] = [];
  const chat = new Chat({
    together,
    drafts: { other: "half a thought" },
    keepDrafts: (now) => drafts.push(now),
    agent,
    ready: "ready",
    link: undefined,
    conversation,
    keepConversation: async (id) => {
      kept.push(id);
    },
  });
  return { agent, chat, kept, drafts };
}

const soon = () => vi.advanceTimersByTimeAsync(1);
const texts = (chat: Chat) => chat.state.thread.lines.flatMap((line) => ("text" in line ? [line.text] : []));

test("a message is sent, its answer followed, and the conversation kept for the next one", async () => {
  const { agent, chat, kept } = make();
  await chat.open();
  const sending = chat.send(" hi ");
  agent.say({ case: "turnStarted", value: { model: "m" } });
  agent.say({ case: "textDelta", value: { text: "Hel" } });
  await soon();
  expect(texts(chat)).toEqual(["hi", "Hel"]);
  agent.say({ case: "message", value: { role: Role.ASSISTANT, text: "Hello" } });
  agent.say({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
  await sending;
  await soon();
  expect(texts(chat)).toEqual(["hi", "Hello"]);
  expect(chat.state.thread.running).toBe(false);
  expect(kept).toEqual(["conv"]);
  void chat.send("again");
  await soon();
  expect(agent.sent).toEqual([": hi", "conv: again"]);
  // One stream is enough for all that follows.
  expect(agent.followed).toEqual([0n]);
});

test("Stop stops the turn and nothing else", async () => {
  const { agent, chat } = make();
  await chat.stop();
  void chat.send("hi");
  agent.say({ case: "turnStarted", value: {} });
  await soon();
  await chat.stop();
  expect(agent.stopped).toEqual(["conv"]);
  expect(chat.state.thread.running).toBe(true);
});

test("a stream that breaks off is opened again after the last event: nothing is missed, nothing comes twice", async () => {
  const { agent, chat } = make();
  void chat.send("hi");
  agent.say({ case: "turnStarted", value: {} });
  await soon();
  agent.say({ case: "textDelta", value: { text: "par" } });
  await soon();
  agent.failures.push(new ConnectError("", Code.Unavailable), new ConnectError("", Code.Unavailable));
  agent.breakOff(new ConnectError("", Code.Unavailable));
  await soon();
  expect(chat.state.problem).toBe("The server cannot be reached.");
  agent.say({ case: "textDelta", value: { text: "t and" } });
  await vi.advanceTimersByTimeAsync(15_000);
  expect(chat.state.problem).toBe("");
  expect(texts(chat)).toEqual(["hi", "part and"]);
  agent.say({ case: "textDelta", value: { text: " rest" } });
  await soon();
  expect(texts(chat)).toEqual(["hi", "part and rest"]);
  agent.say({ case: "message", value: { role: Role.ASSISTANT, text: "part and rest" } });
  agent.say({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
  await soon();
  expect(texts(chat)).toEqual(["hi", "part and rest"]);
  expect(chat.state.thread.running).toBe(false);
  expect(agent.followed).toEqual([0n, 1n]);
});

test("a server that has less than was shown, as after a restored backup, is read from the beginning", async () => {
  const { agent, chat } = make("conv");
  agent.store({ case: "message", value: { role: Role.USER, text: "one" } });
  agent.store({ case: "notice", value: { code: "x", text: "two" } });
  await chat.open();
  await soon();
  agent.stored.pop();
  agent.breakOff(new ConnectError("", Code.Unavailable));
  await vi.advanceTimersByTimeAsync(5000);
  expect(texts(chat)).toEqual(["one"]);
  expect(agent.followed).toEqual([0n, 2n, 0n]);
});

test("a message whose answer is lost on the way is said once", async () => {
  const { agent, chat } = make();
  agent.failures.push(new ConnectError("", Code.Unavailable));
  const sending = chat.send("hi");
  await vi.advanceTimersByTimeAsync(1100);
  await sending;
  expect(agent.sent).toEqual([": hi"]);
  expect(chat.state.problem).toBe("");
});

test("while a turn runs a message waits for its end, or enters the turn; it is changed and taken back", async () => {
  const { agent, chat } = make();
  void chat.send("hi");
  agent.say({ case: "turnStarted", value: {} });
  await soon();
  agent.waits = true;
  void chat.send("later");
  await soon();
  agent.say({ case: "queued", value: { messageId: "q1", text: "later" } });
  agent.say({ case: "queued", value: { messageId: "q2", text: "theirs", sender: { speaker: 2, handle: "9ab1" } } });
  await soon();
  expect(chat.state.thread.queue).toEqual([
    { messageId: "q1", text: "later", from: "" },
    { messageId: "q2", text: "theirs", from: "9ab1" },
  ]);
  expect(texts(chat)).toEqual(["hi"]);
  await chat.editQueued("q1", "better");
  agent.say({ case: "queueEdited", value: { messageId: "q1", text: "better" } });
  await chat.removeQueued("q2");
  agent.say({ case: "queueRemoved", value: { messageId: "q2" } });
  agent.waits = false;
  await chat.send("now", true);
  expect(agent.sent).toEqual([": hi", "conv: later", "conv: now (steer)"]);
  expect(agent.acts).toEqual(["edit conv q1 better", "remove conv q2"]);
  // When the turn ends, what waits begins the next one.
  agent.say({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
  agent.say({ case: "turnStarted", value: {} });
  agent.say({ case: "message", value: { role: Role.USER, text: "better", messageId: "q1" } });
  await soon();
  expect(chat.state.thread).toMatchObject({ queue: [], running: true });
  expect(texts(chat)).toEqual(["hi", "better"]);
  // One that does not get through goes back into the field.
  agent.failures.push(new ConnectError("too long", Code.InvalidArgument));
  await chat.send("lost");
  expect(chat.draft()).toBe("lost");
  expect(chat.state.problem).toBe("too long");
});

test("several panels follow one conversation", async () => {
  const { agent, chat } = make("conv");
  const other = new Chat({
    agent,
    ready: "ready",
    link: undefined,
    conversation: "conv",
    keepConversation: async () => {},
  });
  await Promise.all([chat.open(), other.open()]);
  await soon();
  void other.send("hi");
  agent.say({ case: "turnStarted", value: {} });
  agent.say({ case: "message", value: { role: Role.USER, text: "hi", messageId: "theirs" } });
  agent.say({ case: "textDelta", value: { text: "Hel" } });
  await soon();
  expect(texts(chat)).toEqual(["hi", "Hel"]);
  expect(chat.state.thread.running).toBe(true);
});

test("a conversation is renamed, archived, left, and opened again", async () => {
  const { agent, chat, kept } = make("conv");
  agent.list = [row("conv")];
  agent.archivedList = [row("old")];
  await chat.open();
  await chat.rename("conv", "Better");
  await chat.showArchived(true);
  expect(chat.state.archived?.map(({ id }) => id)).toEqual(["old"]);
  await chat.reopen("old");
  await chat.archive("conv");
  expect(agent.acts).toEqual(["rename conv Better", "reopen old", "archive conv"]);
  expect(chat.state.thread.conversationId).toBe("");
  expect(kept).toEqual([""]);
  await soon();
  expect(agent.followers).toBe(0);
});

test("a message that never got through is told, and the panel is free again", async () => {
  const { agent, chat } = make();
  agent.failures.push(new ConnectError("too long", Code.InvalidArgument));
  await chat.send("hi");
  expect(chat.state).toMatchObject({ problem: "too long", thread: { running: false } });
});

test("an opened panel shows the conversation it was left with, and waits for a turn that still runs", async () => {
  const { agent, chat } = make("conv");
  agent.store({ case: "message", value: { role: Role.USER, text: "hi" } });
  agent.store({ case: "turnStarted", value: {} });
  void chat.open();
  await soon();
  expect(chat.state.thread).toMatchObject({ running: true, conversationId: "conv" });
  agent.store({ case: "message", value: { role: Role.ASSISTANT, text: "Hello" } });
  agent.store({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
  await vi.advanceTimersByTimeAsync(1100);
  expect(texts(chat)).toEqual(["hi", "Hello"]);
});

test("a conversation that is gone is left", async () => {
  const { agent, chat, kept } = make("gone");
  // biome-ignore lint/correctness/useYield: it fails before there is anything to yield.
  agent.follow = async function* () {
    throw new ConnectError("", Code.NotFound);
  };
  await chat.open();
  await soon();
  expect(kept).toEqual([""]);
  expect(chat.state).toMatchObject({ problem: "", thread: { conversationId: "" } });
});

test("a panel that cannot reach the server tries again, and does not with a token that is refused", async () => {
  const { agent, chat } = make();
  agent.failures.push(new ConnectError("", Code.Unavailable));
  void chat.open();
  await soon();
  expect(chat.state.problem).toBe("The server cannot be reached.");
  await vi.advanceTimersByTimeAsync(1000);
  expect(chat.state).toMatchObject({ problem: "", model: { name: "m" } });
  agent.failures.push(new ConnectError("void", Code.Unauthenticated));
  await chat.open();
  expect(chat.state.problem).toBe("void");
});

test("a new conversation begins empty", async () => {
  const { agent, chat, kept } = make();
  void chat.send("hi");
  agent.say({ case: "turnStarted", value: {} });
  await soon();
  await chat.begin();
  expect(chat.state.thread.lines).toEqual([]);
  expect(kept).toEqual(["conv", ""]);
});

const notice = (text: string, sequence: bigint, conversationId: string) =>
  create(EventSchema, { kind: { case: "notice", value: { code: "x", text } }, sequence, conversationId });

test("another conversation is shown, with what was typed there, and the one before goes on by itself", async () => {
  const { agent, chat, kept, drafts } = make();
  agent.others.set("other", [notice("theirs", 1n, "other")]);
  await chat.open();
  void chat.send("hi");
  agent.say({ case: "turnStarted", value: {} });
  await soon();
  chat.keepDraft("not yet");
  const { view } = chat.state;
  await chat.show("other");
  await soon();
  expect(texts(chat)).toEqual(["theirs"]);
  expect(chat.state.view).toBe(view + 1);
  expect(chat.draft()).toBe("half a thought");
  expect(agent.stopped).toEqual([]);
  // What still arrives of the first one is not taken for this one's.
  agent.say({ case: "notice", value: { code: "x", text: "late" } });
  await soon();
  expect(texts(chat)).toEqual(["theirs"]);
  expect(kept).toEqual(["conv", "other"]);
  expect(drafts.at(-1)).toEqual({ other: "half a thought", conv: "not yet" });
});

test("a server that goes away while nothing happens is said, and said no more when it is back", async () => {
  const { agent, chat } = make();
  await chat.open();
  const list = agent.conversations;
  agent.conversations = async () => {
    throw new ConnectError("", Code.Unavailable);
  };
  await chat.refresh();
  expect(chat.state.problem).toBe("The server cannot be reached.");
  agent.conversations = list;
  await chat.refresh();
  expect(chat.state.problem).toBe("");
});

test("a message that did not get through is taken back", async () => {
  const { agent, chat } = make();
  agent.failures.push(new ConnectError("busy", Code.FailedPrecondition));
  await chat.send("lost");
  const { view } = chat.state;
  chat.takeBack();
  expect(chat.draft()).toBe("lost");
  expect(chat.state).toMatchObject({ view: view + 1, thread: { lines: [] } });
});

test("the panels of a profile hold two streams; a third one reads what is stored, until one is free", async () => {
  const together = new FakeTogether();
  const panels = [together, together.other(), together.other()].map((each) => make("", each));
  for (const { agent, chat } of panels) {
    void chat.send("hi");
    agent.say({ case: "turnStarted", value: {} });
  }
  await soon();
  for (const { agent } of panels) {
    agent.say({ case: "textDelta", value: { text: "piece" } });
  }
  await soon();
  expect(panels.map(({ chat }) => texts(chat))).toEqual([["hi", "piece"], ["hi", "piece"], ["hi"]]);
  for (const { agent } of panels) {
    agent.store({ case: "message", value: { role: Role.ASSISTANT, text: "whole" } });
    agent.store({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
  }
  await vi.advanceTimersByTimeAsync(1100);
  expect(panels.map(({ chat }) => texts(chat).at(-1))).toEqual(["whole", "whole", "whole"]);
  await panels[0]?.chat.begin();
  await vi.advanceTimersByTimeAsync(1100);
  expect(panels.map(({ agent }) => agent.followers)).toEqual([0, 1, 1]);
});
