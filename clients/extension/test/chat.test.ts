import { Code, ConnectError } from "@connectrpc/connect";
import { Role, TurnEnd } from "@throwbar/es/pb/agent";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Chat } from "../src/panel/chat.js";
import { FakeAgent } from "./fake/agent.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function make(conversation = "") {
  const agent = new FakeAgent();
  const kept: string[] = [];
  const chat = new Chat({
    agent,
    ready: "ready",
    link: undefined,
    conversation,
    keepConversation: async (id) => {
      kept.push(id);
    },
  });
  return { agent, chat, kept };
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
