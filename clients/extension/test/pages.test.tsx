// @vitest-environment happy-dom
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { Role, TurnEnd } from "@throwbar/es/pb/agent";
import { DeviceService, Kind, PairResponseSchema } from "@throwbar/es/pb/device";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isMessage, type LinkStatus } from "../src/bridge/messages.js";
import { operatorKey, pairingKey, privateKey } from "../src/bridge/settings.js";
import { pair } from "../src/pairing/pair.js";
import { showSettings } from "../src/pairing/settings.js";
import { Chat } from "../src/panel/chat.js";
import { Inbox } from "../src/panel/inbox.js";
import { alone } from "../src/panel/together.js";
import { showPanel } from "../src/panel/view.js";
import { FakeAgent } from "./fake/agent.js";
import { putAway } from "./fake/frames.js";
import { FakeHub } from "./fake/messages.js";
import { FakeStorage } from "./fake/storage.js";
import { until } from "./fake/until.js";

let root: HTMLElement;

beforeEach(() => {
  document.body.innerHTML = "<main></main>";
  root = document.querySelector("main") as HTMLElement;
});

afterEach(putAway);

const find = <E extends Element = HTMLElement>(selector: string) => {
  const element = root.querySelector<E>(selector);
  if (element === null) {
    throw new Error(`no ${selector}`);
  }
  return element;
};

const seesPrivate = async () => false;

const about = async () => ({ version: "1", agent: "Chromium 156", platform: "linux" });

/** A server that pairs one code. */
function pairing() {
  const asked: unknown[] = [];
  const transport = createRouterTransport(({ rpc }) => {
    rpc(DeviceService.method.pair, (request) => {
      asked.push(request);
      if (request.code !== "good") {
        throw new ConnectError("this pairing code is wrong", Code.PermissionDenied);
      }
      return create(PairResponseSchema, { deviceId: "dev1", token: "secret", checkWord: "maple" });
    });
  });
  return { asked, transport: () => transport };
}

test("pairing asks for the server, says who it is, and keeps what it gets", async () => {
  const { asked, transport } = pairing();
  const allowed: string[] = [];
  const allow = async (origin: string) => {
    allowed.push(origin);
    return true;
  };
  const outcome = await pair({ server: "127.0.0.1:1/", code: " good ", name: "laptop" }, { about, allow, transport });
  expect(outcome).toEqual({
    ok: true,
    pairing: { server: "http://127.0.0.1:1", deviceId: "dev1", token: "secret", name: "laptop" },
    checkWord: "maple",
  });
  expect(allowed).toEqual(["http://127.0.0.1:1"]);
  expect(asked).toMatchObject([{ code: "good", name: "laptop", kind: Kind.BROWSER, agent: "Chromium 156" }]);
});

test.each([
  [{ server: "http://x/y", code: "good", name: "n" }, "no server address"],
  [{ server: "", code: "good", name: "n" }, "no server address"],
  [{ server: "http://x", code: " ", name: "n" }, "Fill in"],
  [{ server: "http://x", code: "bad", name: "n" }, "this pairing code is wrong"],
])("%j is refused: %s", async (input, text) => {
  const { transport } = pairing();
  const outcome = await pair(input, { about, allow: async () => true, transport });
  expect(outcome).toMatchObject({ ok: false, text: expect.stringContaining(text) });
});

test("without the person's consent nothing is sent", async () => {
  const { asked, transport } = pairing();
  const outcome = await pair(
    { server: "x.test", code: "good", name: "n" },
    { about, allow: async () => false, transport },
  );
  expect(outcome.ok).toBe(false);
  expect(asked).toEqual([]);
});

function settings() {
  const storage = new FakeStorage();
  const hub = new FakeHub();
  const { transport } = pairing();
  const link = hub.part();
  const parts = { storage, messages: hub.part(), about, seesPrivate, allow: async () => true, transport };
  const say = (status: LinkStatus) => link.send({ to: "pages", kind: "status", status });
  return { storage, parts, hub, say };
}

const status = (state: LinkStatus["state"]): LinkStatus => ({
  state,
  since: 0,
  detail: "",
  server: "http://x",
  name: "laptop",
  paused: false,
});

test("the settings page pairs, shows the check word, and keeps only the pairing", async () => {
  const { storage, parts } = settings();
  await showSettings(root, parts);
  expect(find<HTMLInputElement>("#name").value).toBe("Chromium on linux");
  find<HTMLInputElement>("#code").value = "good";
  find("form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await until(() => expect(find("#check-word").textContent).toBe("maple"));
  expect(find<HTMLInputElement>("#code").value).toBe("");
  expect([...storage.local.items.keys()]).toEqual([pairingKey]);
});

test("the settings page tells the pairing's token from the operator's, keeps the latter and forgets it", async () => {
  const { storage, parts } = settings();
  await showSettings(root, parts);
  expect(root.textContent).toContain("The token from pairing cannot talk to the agent");
  const form = find("#operator-button").closest("form") as HTMLFormElement;
  for (const [value, kept] of [
    [" token ", '"token"'],
    ["", undefined],
  ] as const) {
    find<HTMLInputElement>("#operator").value = value;
    form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    await until(() => expect(storage.local.items.get(operatorKey)).toBe(kept));
  }
});

test("private windows take part only if a person says so, and the page says what that means and what is missing", async () => {
  const { storage, parts } = settings();
  await showSettings(root, parts);
  await until(() => expect(find<HTMLInputElement>("#private").disabled).toBe(false));
  const box = find<HTMLInputElement>("#private");
  expect(box.checked).toBe(false);
  expect(find("#private-means").textContent).toContain("go to your server");
  for (const [told, kept] of [
    [true, "true"],
    [false, undefined],
  ] as const) {
    box.checked = told;
    box.dispatchEvent(new Event("change", { bubbles: true }));
    await until(() => expect(storage.local.items.get(privateKey)).toBe(kept));
    await until(() => expect(root.querySelector("#private-hidden") !== null).toBe(told));
  }
});

test("the settings page follows the connection", async () => {
  const { parts, say } = settings();
  await showSettings(root, parts);
  await until(async () => {
    await say({
      state: "replaced",
      since: 0,
      detail: "Another browser.",
      server: "http://x",
      name: "laptop",
      paused: false,
    });
    expect(find("#state").textContent).toBe("Another browser has taken over.");
  });
  expect(root.textContent).toContain("Connect this browser again");
});

test("the settings page shows when it is tried next, and tries now when asked", async () => {
  const { parts, hub, say } = settings();
  const asked: unknown[] = [];
  hub.part().onMessage((message) => {
    if (isMessage(message, "link")) {
      asked.push(message.kind);
      return Promise.resolve(status("offline"));
    }
    return undefined;
  });
  await showSettings(root, parts);
  await until(async () => {
    await say({ ...status("offline"), retryAt: Date.now() + 9500, detail: "The server cannot be reached." });
    expect(find("#note").textContent).toMatch(/^Next attempt in (9|10) seconds\.$/);
  });
  expect(root.textContent).toContain("The server cannot be reached.");
  find("#restart").click();
  await until(() => expect(asked).toContain("restart"));
});

test("the pause switch asks the worker, shows what is so, and says when it could not be stored", async () => {
  const { parts, hub, say } = settings();
  const asked: boolean[] = [];
  let full = false;
  hub.part().onMessage((message) => {
    if (isMessage(message, "worker") && message.kind === "pause") {
      asked.push(message.paused);
      return full ? Promise.reject(new Error("quota exceeded")) : Promise.resolve(message.paused);
    }
    return undefined;
  });
  await showSettings(root, parts);
  const box = () => find<HTMLInputElement>("#paused");
  await until(async () => {
    await say(status("online"));
    expect(box().disabled).toBe(false);
  });
  box().click();
  await until(() => expect(asked).toEqual([true]));
  // The page does not take its own word for it.
  expect(box().checked).toBe(false);
  await say({ ...status("online"), paused: true });
  await until(() => expect(box().checked).toBe(true));
  full = true;
  box().click();
  await until(() => expect(root.querySelector("[role=alert]")?.textContent).toContain("quota exceeded"));
  expect(box().checked).toBe(true);
});

function panel(ready: "ready" | "unpaired" | "tokenless" = "ready") {
  const agent = new FakeAgent();
  const keepConversation = async () => {};
  const chat = new Chat({
    agent: ready === "ready" ? agent : undefined,
    ready,
    link: undefined,
    conversation: "",
    keepConversation,
  });
  const nothing = async () => {};
  const inbox = new Inbox(undefined, alone);
  showPanel(root, { chat, inbox, openSettings: nothing, reconnect: nothing, pause: nothing });
  return { agent, chat };
}

test.each([
  ["unpaired", "not paired"],
  ["tokenless", "operator token"],
] as const)("a panel that is %s says so in one line", (ready, text) => {
  panel(ready);
  expect(find("#obstacle").textContent).toContain(text);
  expect(find<HTMLTextAreaElement>("#message").disabled).toBe(true);
});

test("a panel without a model shows the hint and takes no message", async () => {
  const { agent, chat } = panel();
  agent.answer = { name: "", hint: "set a model" };
  await chat.open();
  await until(() => expect(find("#obstacle").textContent).toBe("set a model"));
  expect(find<HTMLTextAreaElement>("#message").disabled).toBe(true);
});

test("a token that the server does not accept leads to the settings, any other problem to another attempt", async () => {
  const { agent, chat } = panel();
  agent.failures.push(new ConnectError("void", Code.Unauthenticated));
  await chat.open();
  await until(() => expect(find(".problem").textContent).toBe("void Open settings"));
  agent.failures.push(new ConnectError("", Code.Unavailable));
  void chat.open();
  await until(() => expect(find(".problem").textContent).toBe("The server cannot be reached. Try again"));
  find(".problem button").click();
  await until(() => expect(root.querySelector(".problem")).toBeNull());
});

test("a panel streams, folds tools, and shows Stop while it runs", async () => {
  const { agent, chat } = panel();
  await chat.open();
  const sending = chat.send("hi");
  agent.say({ case: "turnStarted", value: {} });
  agent.say({ case: "toolCall", value: { callId: "c", name: "listTabs", arguments: "{}" } });
  agent.say({ case: "textDelta", value: { text: "<b>Hel" } });
  await until(() => expect(find("#lines .agent").textContent).toBe("<b>Hel"));
  expect(find("details.tool").hasAttribute("open")).toBe(false);
  expect(find("details.tool summary").textContent).toContain("List tabs");
  find("#stop").click();
  await until(() => expect(agent.stopped).toEqual(["conv"]));
  agent.say({ case: "message", value: { role: Role.ASSISTANT, text: "<b>Hello" } });
  agent.say({ case: "turnEnded", value: { reason: TurnEnd.ANSWERED } });
  await sending;
  await until(() => expect(root.querySelector("#stop")).toBeNull());
  expect(find("#lines .agent p").innerHTML).toBe("&lt;b&gt;Hello");
});
