import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Event, EventSchema, Role, TurnEnd } from "@throwbar/es/pb/agent";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Conversation } from "../src/panel/agent.js";
import { Chat, type Drafts } from "../src/panel/chat.js";
import { FakeAgent } from "./fake/agent.js";
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
  agent.end();
  await sending;
  expect(texts(chat)).toEqual(["hi", "Hello"]);
  expect(chat.state.thread.running).toBe(false);
  expect(kept).toEqual(["conv"]);
  void chat.send("again");
  await soon();
  expect(agent.sent).toEqual([": hi", "conv: again"]);
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

test("a stream that breaks off is gone on with from what is stored", async () => {
  const { agent, chat } = make();
  void chat.send("hi");
  agent.say({ case: "turnStarted", value: {} });
  agent.say({ case: "textDelta", value: { text: "par" } });
  await soon();
  agent.breakOff(new ConnectError("", Code.Unavailable));
  await soon();
  expect(chat.state.problem).toBe("The server cannot be reached.");
  agent.store({ case: "message", value: { role: Role.ASSISTANT, text: "part and rest" } });
  agent.store({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
  await vi.advanceTimersByTimeAsync(1100);
  expect(texts(chat)).toEqual(["hi", "part and rest"]);
  expect(chat.state.thread.running).toBe(false);
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
  agent.events = async () => {
    throw new ConnectError("", Code.NotFound);
  };
  await chat.open();
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

const row = (id: string, change: Partial<Conversation> = {}): Conversation => ({
  id,
  handle: id.slice(0, 4),
  title: id,
  running: false,
  updatedAt: 1,
  ...change,
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

test("a conversation that is opened while another one is still being read wins", async () => {
  const { agent, chat } = make();
  let answer: (events: Event[]) => void = () => {};
  const slow = new Promise<Event[]>((resolve) => {
    answer = resolve;
  });
  const { events } = agent;
  agent.events = (id, after) => (id === "slow" ? slow : events.call(agent, id, after));
  agent.others.set("other", [notice("theirs", 1n, "other")]);
  const first = chat.show("slow");
  await soon();
  await chat.show("other");
  answer([notice("slow", 1n, "slow")]);
  await first;
  expect(texts(chat)).toEqual(["theirs"]);
  expect(chat.state).toMatchObject({ loading: false, thread: { conversationId: "other" } });
});

test("what somebody else does in the shown conversation is read when the list says so, and not otherwise", async () => {
  const { agent, chat } = make("conv");
  agent.list = [row("conv")];
  agent.store({ case: "message", value: { role: Role.USER, text: "hi" } });
  await chat.open();
  const read = vi.spyOn(agent, "events");
  await chat.refresh();
  expect(read).not.toHaveBeenCalled();
  agent.store({ case: "turnStarted", value: {} });
  agent.list = [row("conv", { running: true, updatedAt: 2 })];
  await chat.refresh();
  expect(chat.state.thread.running).toBe(true);
  agent.store({ case: "message", value: { role: Role.ASSISTANT, text: "Hello" } });
  agent.store({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
  await vi.advanceTimersByTimeAsync(1100);
  expect(texts(chat)).toEqual(["hi", "Hello"]);
  expect(chat.state.thread.running).toBe(false);
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

test("while a turn runs nothing is sent, and a message that did not get through is taken back", async () => {
  const { agent, chat } = make();
  agent.failures.push(new ConnectError("busy", Code.FailedPrecondition));
  await chat.send("lost");
  const { view } = chat.state;
  chat.takeBack();
  expect(chat.draft()).toBe("lost");
  expect(chat.state).toMatchObject({ view: view + 1, thread: { lines: [] } });
  void chat.send("hi");
  agent.say({ case: "turnStarted", value: {} });
  await soon();
  expect(await chat.send("too early")).toBe(false);
  expect(agent.sent).toEqual([": hi"]);
});

test("the panels of a profile hold two streams of turns; a third one reads what is stored", async () => {
  const together = new FakeTogether();
  const panels = [together, together.other(), together.other()].map((each) => make("", each));
  for (const { agent, chat } of panels) {
    void chat.send("hi");
    agent.say({ case: "turnStarted", value: {} });
    agent.say({ case: "textDelta", value: { text: "piece" } });
  }
  await soon();
  expect(panels.map(({ chat }) => texts(chat))).toEqual([["hi", "piece"], ["hi", "piece"], ["hi"]]);
  for (const { agent } of panels) {
    agent.store({ case: "message", value: { role: Role.ASSISTANT, text: "whole" } });
    agent.store({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
    agent.end();
  }
  await vi.advanceTimersByTimeAsync(1100);
  expect(panels.map(({ chat }) => texts(chat).at(-1))).toEqual(["whole", "whole", "whole"]);
});
