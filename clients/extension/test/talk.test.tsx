// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Chat } from "../src/panel/chat.js";
import { Inbox } from "../src/panel/inbox.js";
import { alone } from "../src/panel/together.js";
import { showPanel } from "../src/panel/view.js";
import { conversation, FakeAgent } from "./fake/agent.js";
import { putAway } from "./fake/frames.js";
import { until } from "./fake/until.js";

let root: HTMLElement;

beforeEach(() => {
  document.body.innerHTML = '<div id="root"></div>';
  root = find("#root");
});

afterEach(putAway);

function find<E extends HTMLElement = HTMLElement>(selector: string): E {
  const element = document.querySelector<E>(selector);
  if (element === null) {
    throw new Error(`there is no ${selector}`);
  }
  return element;
}

const all = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)];
const labelled = (label: string) => find<HTMLButtonElement>(`[aria-label="${label}"]`);

function panel() {
  const agent = new FakeAgent();
  agent.list = [
    conversation("3f2a1", { title: "Trip", status: "running", queued: 1 }),
    conversation("c1d20", { title: "Read", parentId: "3f2a1", agent: "reader", status: "waiting" }),
    conversation("9ab10", { title: "News \u202e", status: "failed" }),
  ];
  agent.archivedList = [conversation("0ld00", { title: "Old", handle: "" })];
  const nothing = async () => {};
  const chat = new Chat({ agent, ready: "ready", link: undefined, conversation: "conv", keepConversation: nothing });
  const inbox = new Inbox(undefined, alone);
  showPanel(root, { chat, inbox, openSettings: nothing, reconnect: nothing, pause: nothing });
  return { agent, chat };
}

function type(field: HTMLInputElement | HTMLTextAreaElement, text: string): void {
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

test("the list has handles that say what they are, what an agent started under who started it, and the archived ones", async () => {
  const { agent, chat } = panel();
  await chat.open();
  find("#conversations").click();
  await until(() => expect(all(".switcher li")).toHaveLength(3));
  expect(all(".switcher li").map((row) => [row.dataset.depth, row.querySelector("small")?.textContent])).toEqual([
    ["0", expect.stringMatching(/^3f2a running, 1 message waiting, /)],
    ["1", expect.stringMatching(/^c1d2 agent reader, waits for a person, /)],
    ["0", expect.stringMatching(/^9ab1 the last turn failed, /)],
  ]);
  expect(all(".switcher .title").at(2)?.textContent).toBe("News \\u202e");
  expect(find(".switcher .handle").title).toContain("shortest beginning of its id");
  labelled("Rename: Trip").click();
  await until(() => find(".rename input"));
  type(find<HTMLInputElement>(".rename input"), "Journey");
  await until(() => expect(find<HTMLInputElement>(".rename input").value).toBe("Journey"));
  find<HTMLFormElement>(".rename").requestSubmit();
  await until(() => expect(agent.acts).toEqual(["rename 3f2a1 Journey"]));
  await until(() => labelled("Archive: Read"));
  labelled("Archive: Read").click();
  find("#archived").click();
  await until(() => labelled("Open again: Old"));
  labelled("Open again: Old").click();
  await until(() => expect(agent.acts.slice(1)).toEqual(["archive c1d20", "reopen 0ld00"]));
});

test("while a turn runs the field queues and steers, and what waits is changed and taken back", async () => {
  const { agent, chat } = panel();
  await chat.open();
  agent.say({ case: "turnStarted", value: {} });
  agent.say({ case: "queued", value: { messageId: "q1", text: "later" } });
  agent.say({ case: "queued", value: { messageId: "q2", text: "theirs", sender: { speaker: 2, handle: "9ab1" } } });
  await until(() => expect(all(".queue li")).toHaveLength(2));
  expect(all(".queue li")[1]?.textContent).toContain("9ab1");
  // Only a person's own message can be changed.
  expect(all('.queue [title="Change"]')).toHaveLength(1);
  labelled("Change “later”").click();
  await until(() => find(".queue textarea"));
  type(find<HTMLTextAreaElement>(".queue textarea"), "better");
  await until(() => expect(find<HTMLTextAreaElement>(".queue textarea").value).toBe("better"));
  find<HTMLFormElement>(".queue form").requestSubmit();
  labelled("Take back “theirs”").click();
  await until(() => expect(agent.acts).toEqual(["edit conv q1 better", "remove conv q2"]));
  expect(document.querySelector("#send")).toBeNull();
  type(find<HTMLTextAreaElement>("#message"), "now");
  await until(() => find("#steer"));
  find("#steer").click();
  await until(() => expect(agent.sent).toEqual(["conv: now (steer)"]));
  type(find<HTMLTextAreaElement>("#message"), "then");
  await until(() => find("#queue"));
  find("#queue").click();
  await until(() => expect(agent.sent).toEqual(["conv: now (steer)", "conv: then"]));
});

test("other agents are marked, a limit has its button, and the whole answer of a tool is asked for when it is wanted", async () => {
  const { agent, chat } = panel();
  await chat.open();
  const sender = { speaker: 2, conversationId: "9ab10", handle: "9ab1", title: "News" };
  agent.say({ case: "message", value: { role: 1, text: "A person:\nsay yes \u202e", messageId: "m", sender } });
  agent.say({ case: "toolCall", value: { callId: "c", name: "readAll", arguments: "{}" } });
  agent.say({ case: "toolResult", value: { callId: "c", outcome: 1, content: "{}", wholeBytes: 40_000n } });
  agent.say({
    case: "childChanged",
    value: { conversationId: "c1d20", handle: "c1d2", agent: "reader", status: 2 },
  });
  agent.say({ case: "notice", value: { code: "wakes_exhausted", text: "held", canContinue: true } });
  await until(() => find(".go-on"));
  expect(find(".other header").textContent).toBe("The agent of 9ab1 News writes:");
  expect(find(".other p").textContent).toBe("A person:\nsay yes \\u202e");
  expect(find(".child").textContent).toContain("Agent reader c1d2: running");
  const tool = find<HTMLDetailsElement>("details.tool");
  tool.open = true;
  tool.dispatchEvent(new Event("toggle"));
  await until(() => expect(find(".tool .fold .quiet").textContent).toBe("Show all 40 KiB"));
  find(".tool .fold .quiet").click();
  await until(() => expect(find(".whole").textContent).toBe("all of c"));
  find(".go-on").click();
  await until(() => expect(agent.sent).toEqual(["conv: go on"]));
  await until(() => expect(document.querySelector(".go-on")).toBeNull());
});

test("what is typed right after another view was asked for is in the field of that view", async () => {
  const { chat } = panel();
  await chat.open();
  await until(() => expect(find<HTMLTextAreaElement>("#message").disabled).toBe(false));
  const frames = vi.spyOn(globalThis, "requestAnimationFrame").mockImplementation(() => 0); // none comes
  try {
    const before = find("#message");
    find("#new").click();
    await Promise.resolve();
    await Promise.resolve();
    expect(find("#message")).not.toBe(before);
  } finally {
    frames.mockRestore();
  }
});
