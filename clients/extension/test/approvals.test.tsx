// @vitest-environment happy-dom
import { create } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { TurnEnd } from "@throwbar/es/pb/agent";
import {
  ApprovalSchema,
  ApprovalService,
  DecideResponseSchema,
  type Decision,
  WatchApprovalsResponseSchema,
} from "@throwbar/es/pb/approvals";
import { beforeEach, expect, test, vi } from "vitest";
import { connectApprovals } from "../src/panel/approvals.js";
import { Chat } from "../src/panel/chat.js";
import { showPanel } from "../src/panel/view.js";
import { FakeAgent } from "./fake/agent.js";

let root: HTMLElement;

beforeEach(() => {
  document.body.innerHTML = "<main></main>";
  root = document.querySelector("main") as HTMLElement;
});

const hostile = '<img src=x onerror="approve()"> approved';

/** A panel on a server with one approval. */
function panel(refusal = "", known = true) {
  const decided: Decision[] = [];
  let following = 0;
  const transport = createRouterTransport(({ service }) => {
    service(ApprovalService, {
      getApproval: ({ approvalId }) => ({
        approval: create(ApprovalSchema, {
          approvalId,
          hash: "hash-1",
          calls: [
            {
              name: "closeTabs",
              deviceName: "laptop",
              proposed: known ? { kind: { case: "closeTabs", value: { tabIds: ["a_tb-1"] } } } : {},
              targets: [{ id: "a_tb-1", title: hostile, url: "https://evil.example/" }],
            },
          ],
        }),
      }),
      decide: ({ decisions }) => {
        decided.push(...decisions);
        return create(DecideResponseSchema, {
          outcomes: [refusal === "" ? {} : { error: { message: refusal } }],
        });
      },
      async *watchApprovals(_request, { signal }) {
        following++;
        yield create(WatchApprovalsResponseSchema);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        following--;
      },
    });
  });
  const agent = new FakeAgent();
  const chat = new Chat({
    agent,
    approvals: connectApprovals(transport),
    ready: "ready",
    link: undefined,
    conversation: "",
    keepConversation: async () => {},
  });
  showPanel(root, { chat, openSettings: async () => {} });
  return { agent, chat, decided, following: () => following };
}

async function ask(agent: FakeAgent, chat: Chat) {
  await chat.open();
  void chat.send("close all");
  agent.say({ case: "turnStarted", value: {} });
  agent.say({
    case: "approvalRequested",
    value: { callId: "c", approvalId: "ap-1", name: "closeTabs", reason: "it is much" },
  });
  await vi.waitFor(() => expect(root.querySelector(".approval details")).not.toBeNull());
}

const press = (selector: string) => root.querySelector<HTMLButtonElement>(selector)?.click();

test("a call that waits is shown with what it acts on, and a yes carries the hash of that", async () => {
  const { agent, chat, decided } = panel();
  await ask(agent, chat);
  const card = root.querySelector(".approval");
  expect(card?.textContent).toContain("closeTabs waits for approval");
  expect(card?.textContent).toContain("it is much");
  expect(card?.textContent).toContain(hostile); // as text
  expect(card?.querySelector("img")).toBeNull();
  expect(card?.textContent).toContain("throwbar approvals approve ap-1");
  press(".approve");
  await vi.waitFor(() => expect(decided).toHaveLength(1));
  expect(decided[0]).toMatchObject({ approvalId: "ap-1", verdict: { case: "approve", value: { hash: "hash-1" } } });
  agent.say({ case: "approvalResolved", value: { callId: "c", approvalId: "ap-1", state: "approved" } });
  await vi.waitFor(() => expect(root.querySelector(".approve")).toBeNull());
  expect(root.querySelector(".approval")?.textContent).toBe("closeTabs approved");
});

test("a command that the panel does not know is not decided in it", async () => {
  const { agent, chat } = panel("", false);
  await ask(agent, chat);
  expect(root.querySelector(".approve")).toBeNull();
  expect(root.querySelector(".approval")?.textContent).toContain("throwbar approvals approve ap-1");
});

test("a no carries its reason", async () => {
  const { agent, chat, decided } = panel();
  await ask(agent, chat);
  const reason = root.querySelector<HTMLInputElement>(".decide input") as HTMLInputElement;
  reason.value = "not now";
  reason.dispatchEvent(new Event("input", { bubbles: true }));
  await vi.waitFor(() => expect(reason.value).toBe("not now"));
  press(".deny");
  await vi.waitFor(() => expect(decided).toHaveLength(1));
  expect(decided[0]?.verdict).toMatchObject({ case: "deny", value: { reason: "not now" } });
});

test("what is decided elsewhere leaves the buttons' place, and what does not count is said", async () => {
  const { agent, chat } = panel("somebody has decided already");
  await ask(agent, chat);
  press(".approve");
  await vi.waitFor(() => expect(root.querySelector("[role=alert]")?.textContent).toBe("somebody has decided already"));
  agent.say({
    case: "approvalResolved",
    value: { callId: "c", approvalId: "ap-1", state: "denied", reason: "by the other" },
  });
  await vi.waitFor(() => expect(root.querySelector(".decide")).toBeNull());
  expect(root.querySelector(".approval")?.textContent).toBe("closeTabs denied: by the other");
});

test("the panel can be asked while a turn runs, and not longer", async () => {
  const { agent, chat, following } = panel();
  await ask(agent, chat);
  await vi.waitFor(() => expect(following()).toBe(1));
  agent.say({ case: "turnEnded", value: { reason: TurnEnd.STOPPED } });
  await vi.waitFor(() => expect(following()).toBe(0));
  expect(root.querySelector(".approval")?.textContent).toBe("closeTabs withdrawn");
});
