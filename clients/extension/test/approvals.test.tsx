// @vitest-environment happy-dom
import { create, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createRouterTransport } from "@connectrpc/connect";
import { TurnEnd } from "@throwbar/es/pb/agent";
import {
  type Approval,
  type ApprovalCallSchema,
  ApprovalSchema,
  ApprovalService,
  ApprovalState,
  DecideResponseSchema,
  type Decision,
  WatchApprovalsResponseSchema,
} from "@throwbar/es/pb/approvals";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connectApprovals } from "../src/panel/approvals.js";
import { Chat } from "../src/panel/chat.js";
import { Inbox } from "../src/panel/inbox.js";
import { showPanel } from "../src/panel/view.js";
import { FakeAgent } from "./fake/agent.js";
import { putAway } from "./fake/frames.js";
import { FakeTogether } from "./fake/together.js";
import { until } from "./fake/until.js";

let root: HTMLElement;

beforeEach(() => {
  document.body.innerHTML = "<main></main>";
  root = document.querySelector("main") as HTMLElement;
});

afterEach(putAway);

const hostile = '<img src=x onerror="approve()"> \u202eapproved';

type CallInit = MessageInitShape<typeof ApprovalCallSchema>;

const closing: CallInit = {
  commandId: "cmd-1",
  name: "closeTabs",
  deviceId: "a",
  deviceName: "laptop",
  proposed: { kind: { case: "closeTabs", value: { tabIds: ["a_tb-1", "a_tb-2"] } } },
  targets: [
    { id: "a_tb-1", title: hostile, url: "https://evil.example/" },
    { id: "a_tb-2", title: "Two", url: "https://evil.example/two" },
  ],
};

interface Setup {
  readonly calls?: readonly CallInit[];
  readonly refusal?: string;
  readonly conversationId?: string;
}

/** A server with approvals, and panels on it. */
class FakeDesk {
  readonly decided: Decision[] = [];
  readonly approvals = new Map<string, Approval>();
  following = 0;
  refusal = "";
  #wake: (() => void)[] = [];
  #changes: Approval[] = [];

  add(approvalId: string, { calls = [closing], conversationId = "conv" }: Setup = {}): void {
    const approval = create(ApprovalSchema, {
      approvalId,
      hash: "hash-1",
      conversationId,
      principal: conversationId || "token-1234567",
      reason: "it is much",
      state: ApprovalState.PENDING,
      expiresAt: timestampFromMs(Date.now() + 90_000),
      calls: [...calls],
    });
    this.change(approval);
  }

  change(approval: Approval): void {
    this.approvals.set(approval.approvalId, approval);
    this.#changes.push(approval);
    for (const wake of this.#wake.splice(0)) {
      wake();
    }
  }

  end(approvalId: string, state: ApprovalState, decisionReason = ""): void {
    this.change({ ...(this.approvals.get(approvalId) as Approval), state, decisionReason });
  }

  readonly transport = createRouterTransport(({ service }) => {
    service(ApprovalService, {
      getApproval: ({ approvalId }) => ({ approval: this.approvals.get(approvalId) as Approval }),
      listApprovals: () => ({
        approvals: [...this.approvals.values()].filter(({ state }) => state === ApprovalState.PENDING),
      }),
      decide: ({ decisions }) => {
        this.decided.push(...decisions);
        if (this.refusal !== "") {
          return create(DecideResponseSchema, { outcomes: [{ error: { message: this.refusal } }] });
        }
        const [{ approvalId, verdict }] = decisions as [Decision];
        this.end(approvalId, verdict.case === "approve" ? ApprovalState.APPROVED : ApprovalState.DENIED);
        return create(DecideResponseSchema, { outcomes: [{ approval: this.approvals.get(approvalId) as Approval }] });
      },
      watchApprovals: (_request, { signal }) => this.#watch(signal),
    });
  });

  async *#watch(signal: AbortSignal) {
    this.following++;
    yield create(WatchApprovalsResponseSchema);
    let at = 0;
    while (!signal.aborted) {
      const approval = this.#changes[at];
      if (approval === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake.push(resolve);
          signal.addEventListener("abort", () => resolve());
        });
      } else {
        at++;
        yield create(WatchApprovalsResponseSchema, { approval });
      }
    }
    this.following--;
  }

  panel(into: HTMLElement, together = new FakeTogether()) {
    const agent = new FakeAgent();
    const chat = new Chat({
      agent,
      ready: "ready",
      link: undefined,
      conversation: "",
      keepConversation: async () => {},
    });
    const inbox = new Inbox(connectApprovals(this.transport), together);
    const nothing = async () => {};
    showPanel(into, { chat, inbox, openSettings: nothing, reconnect: nothing, pause: nothing });
    const stop = new AbortController();
    void inbox.run(stop.signal);
    return { agent, chat, inbox, stop };
  }
}

function panel({ refusal = "", ...setup }: Setup = {}) {
  const desk = new FakeDesk();
  desk.refusal = refusal;
  desk.add("ap-1", setup);
  return { desk, ...desk.panel(root) };
}

async function ask(agent: FakeAgent, chat: Chat) {
  await chat.open();
  void chat.send("close all");
  agent.say({ case: "turnStarted", value: {} });
  agent.say({
    case: "approvalRequested",
    value: { callId: "c", approvalId: "ap-1", name: "closeTabs", reason: "it is much" },
  });
  await until(() => expect(root.querySelector("#lines .approval .elsewhere")).not.toBeNull());
}

const card = () => root.querySelector<HTMLElement>("#lines .approval") as HTMLElement;

const press = (selector: string) => root.querySelector<HTMLButtonElement>(`#lines ${selector}`)?.click();

function type(selector: string, value: string): void {
  const field = root.querySelector<HTMLInputElement>(`#lines ${selector}`) as HTMLInputElement;
  field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

test("a call that waits is shown with what it acts on, and a yes carries the hash of that", async () => {
  const { agent, chat, desk } = panel();
  await ask(agent, chat);
  expect(card().textContent).toContain("Close tabs on laptop: 2 tabs");
  expect(card().textContent).toContain("it is much");
  expect(card().textContent).toContain('<img src=x onerror="approve()"> \\u202eapproved'); // as text
  expect(card().querySelector("img")).toBeNull();
  expect(card().querySelector(".targets")?.textContent).toContain("https://evil.example/two");
  expect(card().textContent).toContain("throwbar approvals approve ap-1");
  expect(card().textContent).toMatch(/1 min \d\d s left/);
  press(".approve");
  await until(() => expect(desk.decided).toHaveLength(1));
  expect(desk.decided[0]).toMatchObject({
    approvalId: "ap-1",
    verdict: { case: "approve", value: { hash: "hash-1", edits: [] } },
  });
  await until(() => expect(card().querySelector(".approve")).toBeNull());
  expect(card().textContent).toBe("Approved by you · Close tabs on laptop: 2 tabs");
});

test("a command that the panel does not know is not decided in it", async () => {
  const { agent, chat } = panel({ calls: [{ ...closing, proposed: {} } as CallInit] });
  await ask(agent, chat);
  await until(() => expect(card().textContent).toContain("not decided here"));
  expect(card().querySelector(".approve")).toBeNull();
  expect(card().textContent).toContain("throwbar approvals approve ap-1");
});

test("nor is one with an argument that it does not know", async () => {
  const { agent, chat, desk } = panel();
  const value = desk.approvals.get("ap-1")?.calls[0]?.proposed?.kind.value as Message;
  value.$unknown = [{ no: 99, wireType: 0, data: new Uint8Array([1]) }];
  await ask(agent, chat);
  await until(() => expect(card().textContent).toContain("not decided here"));
  expect(card().querySelector(".approve")).toBeNull();
});

test("force is said before everything else", async () => {
  const value = { tabIds: ["a_tb-1"], force: true };
  const { agent, chat } = panel({ calls: [{ ...closing, proposed: { kind: { case: "closeTabs", value } } }] });
  await ask(agent, chat);
  expect(card().querySelector(".call")?.firstElementChild?.className).toBe("grave");
  expect(card().querySelector(".grave")?.textContent).toContain("What was typed in them is lost");
  // Taken away in an edit, it is gone from the head of the form too.
  press(".edit");
  await until(() => expect(card().querySelector("select")).not.toBeNull());
  expect(card().querySelector(".grave")).not.toBeNull();
  const select = card().querySelector("select") as HTMLSelectElement;
  select.value = "";
  select.dispatchEvent(new Event("change", { bubbles: true }));
  await until(() => expect(card().querySelector(".grave")).toBeNull());
});

test("a no carries its reason", async () => {
  const { agent, chat, desk } = panel();
  await ask(agent, chat);
  type(".reason", "not now");
  await until(() => expect(card().querySelector<HTMLInputElement>(".reason")?.value).toBe("not now"));
  press(".deny");
  await until(() => expect(desk.decided).toHaveLength(1));
  expect(desk.decided[0]?.verdict).toMatchObject({ case: "deny", value: { reason: "not now" } });
  await until(() => expect(card().textContent).toContain("Denied by you. Nothing ran"));
});

test("single targets are left out before it is approved", async () => {
  const { agent, chat, desk } = panel();
  await ask(agent, chat);
  press(".edit");
  await until(() => expect(card().querySelectorAll(".items input")).toHaveLength(2));
  card().querySelector<HTMLInputElement>(".items input")?.click();
  await until(() => expect(card().querySelector(".items legend")?.textContent).toBe("Tab IDs: 1 of 2"));
  expect(card().querySelector(".approve")?.textContent).toBe("Approve with changes");
  press(".approve");
  await until(() => expect(desk.decided).toHaveLength(1));
  expect(desk.decided[0]?.verdict).toMatchObject({
    value: {
      hash: "hash-1",
      edits: [{ commandId: "cmd-1", action: { kind: { case: "closeTabs", value: { tabIds: ["a_tb-2"] } } } }],
    },
  });
});

test("an edit that breaks a rule of the contract is said and not sent", async () => {
  const { agent, chat, desk } = panel();
  await ask(agent, chat);
  press(".edit");
  await until(() => expect(card().querySelector(".items")).not.toBeNull());
  press(".items .all button:last-child");
  await until(() => expect(card().querySelector(".edit .trouble")?.textContent).toMatch(/^Tab IDs must/));
  press(".approve");
  await until(() => expect(card().querySelector("[role=alert]")?.textContent).toMatch(/^Tab IDs must/));
  expect(desk.decided).toEqual([]);
});

test("texts and choices are edited, and what is left out is left out", async () => {
  const proposed: CallInit["proposed"] = {
    kind: { case: "groupTabs", value: { tabIds: ["a_tb-1"], title: "Trip", colour: 2, allowUnpin: true } },
  };
  const { agent, chat, desk } = panel({ calls: [{ ...closing, name: "groupTabs", proposed }] });
  await ask(agent, chat);
  press(".edit");
  await until(() => expect(card().querySelectorAll("select")).toHaveLength(2));
  const labelled = (name: string) => {
    const label = [...card().querySelectorAll("label")].find(({ textContent }) => textContent === name);
    return card().querySelector<HTMLInputElement>(`[id="${label?.htmlFor}"]`) as HTMLInputElement;
  };
  labelled("Title").value = "Journey";
  labelled("Title").dispatchEvent(new Event("input", { bubbles: true }));
  await until(() => expect(card().querySelector(".approve")?.textContent).toContain("changes"));
  labelled("Colour").value = "red";
  labelled("Colour").dispatchEvent(new Event("change", { bubbles: true }));
  await until(() => expect(labelled("Colour").value).toBe("red"));
  labelled("Allow unpin").value = "";
  labelled("Allow unpin").dispatchEvent(new Event("change", { bubbles: true }));
  await until(() => expect(labelled("Allow unpin").value).toBe(""));
  press(".approve");
  await until(() => expect(desk.decided).toHaveLength(1));
  const edit = desk.decided[0]?.verdict.value as { edits: { action: { kind: { value: object } } }[] };
  const value = edit.edits[0]?.action.kind.value;
  expect(value).toMatchObject({ tabIds: ["a_tb-1"], title: "Journey", colour: 3 });
  expect(value).not.toHaveProperty("allowUnpin", true);
});

test("a yes is remembered for this conversation or for whoever asked, with the pattern that is shown", async () => {
  const { agent, chat, desk } = panel();
  await ask(agent, chat);
  const [again, conversation] = card().querySelectorAll<HTMLInputElement>(".remember [type=radio]");
  expect(again?.checked).toBe(true);
  conversation?.click();
  await until(() => expect(card().querySelector(".rule")?.textContent).toContain("are these very tabs"));
  expect(card().querySelector(".rule")?.textContent).toContain("Force is not set");
  card().querySelector<HTMLInputElement>(".pattern [type=checkbox]")?.click();
  await until(() => expect(card().querySelector<HTMLInputElement>(".pattern > input")).not.toBeNull());
  expect(card().querySelector<HTMLInputElement>(".pattern > input")?.value).toBe("https://evil.example/*");
  press(".approve");
  await until(() => expect(desk.decided).toHaveLength(1));
  expect(desk.decided[0]?.verdict).toMatchObject({
    value: {
      remember: {
        conversationOnly: true,
        anyDevice: false,
        arguments: [{ path: "target.url", pattern: "https://evil.example/*" }],
      },
    },
  });
});

test("several calls are one plan and one decision", async () => {
  const other = { ...closing, commandId: "cmd-2", deviceName: "desktop" };
  const { agent, chat, desk } = panel({ calls: [closing, other] });
  await ask(agent, chat);
  expect(card().querySelector("h3")?.textContent).toBe("2 calls, one decision");
  expect([...card().querySelectorAll("h4")].map(({ textContent }) => textContent)).toEqual([
    "1. Close tabs on laptop: 2 tabs",
    "2. Close tabs on desktop: 2 tabs",
  ]);
  expect(card().querySelector(".remember")).toBeNull(); // the server remembers single calls only
  press(".approve");
  await until(() => expect(desk.decided).toHaveLength(1));
});

test("what does not count is said, and what is decided elsewhere leaves the buttons' place", async () => {
  const { agent, chat, desk } = panel({ refusal: "somebody has decided already" });
  await ask(agent, chat);
  press(".approve");
  await until(() => expect(card().querySelector("[role=alert]")?.textContent).toBe("somebody has decided already"));
  agent.say({
    case: "approvalResolved",
    value: { callId: "c", approvalId: "ap-1", state: "denied", reason: "by the other" },
  });
  await until(() => expect(card().querySelector(".decide")).toBeNull());
  expect(card().textContent).toBe("Denied. Nothing ran · Close tabs on laptop: 2 tabs: by the other");
  expect(desk.decided).toHaveLength(1);
});

test.each([
  [ApprovalState.EXPIRED, "Nobody decided in time. It was not denied, and nothing ran"],
  [ApprovalState.WITHDRAWN, "Not needed any more. Nothing ran"],
  [ApprovalState.VOID, "Does not count any more"],
])("the feed ends a card by itself: %s", async (state, text) => {
  const { agent, chat, desk } = panel();
  await ask(agent, chat);
  desk.end("ap-1", state);
  await until(() => expect(card().textContent).toContain(text));
  expect(card().textContent).not.toMatch(/^Denied/);
});

test("a turn that ends takes its question with it", async () => {
  const { agent, chat } = panel();
  await ask(agent, chat);
  agent.say({ case: "turnEnded", value: { reason: TurnEnd.STOPPED } });
  await until(() => expect(card().textContent).toContain("Not needed any more"));
});

test("what others ask is counted in the head and decided in its sheet", async () => {
  const { desk, chat } = panel({ conversationId: "" });
  await chat.open();
  desk.add("ap-2", { conversationId: "other" });
  const count = () => root.querySelector("#waiting")?.textContent;
  await until(() => expect(count()).toBe("2"));
  const urgent = () => root.querySelector("#urgent")?.textContent;
  await until(() => expect(urgent()).toBe("Close tabs on laptop: 2 tabs waits for you: asked elsewhere."));
  root.querySelector<HTMLButtonElement>("#waiting")?.click();
  await until(() => expect(root.querySelectorAll("#waiting-sheet .decide")).toHaveLength(2));
  const cards = [...root.querySelectorAll<HTMLElement>("#waiting-sheet .approval")];
  expect(cards.map((each) => each.querySelector(".asker")?.textContent)).toEqual([
    "Asked by a program or the command line, with the token token-12.",
    "Asked by the conversation other.",
  ]);
  cards[0]?.querySelector<HTMLButtonElement>(".deny")?.click();
  await until(() => expect(count()).toBe("1"));
  expect(root.querySelector('#waiting-sheet [data-id="ap-1"]')?.textContent).toContain("Denied by you");
});

test("of several panels one follows the server, and all drop what one decides", async () => {
  const desk = new FakeDesk();
  desk.add("ap-1");
  const second = document.createElement("div");
  document.body.append(second);
  const together = new FakeTogether();
  const leader = desk.panel(root, together);
  const other = desk.panel(second, together.other());
  await until(() => expect(second.querySelector("#waiting")?.textContent).toBe("1"));
  desk.add("ap-2", { conversationId: "" });
  await until(() => expect(second.querySelector("#waiting")?.textContent).toBe("2"));
  expect(desk.following).toBe(1);
  await leader.inbox.decide(desk.approvals.get("ap-1") as Approval, { yes: true, reason: "" });
  await until(() => expect(second.querySelector("#waiting")?.textContent).toBe("1"));
  // The one that led is closed: the other takes its place.
  leader.stop.abort();
  desk.add("ap-3", { conversationId: "" });
  await until(() => expect(second.querySelector("#waiting")?.textContent).toBe("2"));
  other.stop.abort();
});
