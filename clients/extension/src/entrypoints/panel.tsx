import { createTransport } from "@throwbar/es/transport";
import {
  conversationKey,
  draftsKey,
  operatorKey,
  pairingKey,
  readConversation,
  readDrafts,
  readOperatorToken,
  readPairing,
  writeText,
} from "../bridge/settings.js";
import { askStatus, restartLink, setPaused, watchStatus } from "../bridge/status.js";
import { connectAgent } from "../panel/agent.js";
import { connectApprovals } from "../panel/approvals.js";
import { Chat } from "../panel/chat.js";
import { Inbox } from "../panel/inbox.js";
import { panelsTogether } from "../panel/together.js";
import { showPanel } from "../panel/view.js";
import { chromeMessages } from "../platform/chrome/messages.js";
import { openSettings } from "../platform/chrome/page.js";
import { chromeStorage } from "../platform/chrome/storage.js";

const storage = chromeStorage();

async function start(root: Element): Promise<void> {
  const [pairing, token, conversation, drafts] = await Promise.all([
    readPairing(storage.local),
    readOperatorToken(storage.local),
    readConversation(storage.local),
    readDrafts(storage.session),
  ]);
  const usable = pairing !== undefined && token !== "";
  const transport = usable ? createTransport({ baseUrl: pairing.server, token: () => token }) : undefined;
  const together = panelsTogether("panel");
  const inbox = new Inbox(transport && connectApprovals(transport), together);
  const chat = new Chat({
    agent: transport && connectAgent(transport),
    ready: pairing === undefined ? "unpaired" : token === "" ? "tokenless" : "ready",
    link: undefined,
    conversation,
    keepConversation: (id) => writeText(storage.local, conversationKey, id),
    drafts,
    keepDrafts: (kept) => void storage.session.set({ [draftsKey]: kept }).catch(() => undefined),
    together,
  });
  watchStatus(chromeMessages, (status) => chat.setLink(status));
  const ask = () => void askStatus(chromeMessages).then((status) => status && chat.setLink(status));
  ask();
  showPanel(root, {
    chat,
    inbox,
    openSettings,
    reconnect: () => restartLink(chromeMessages),
    pause: async (paused) => {
      await setPaused(chromeMessages, paused);
      ask();
    },
  });
  // Both go on as long as the page.
  const { signal } = new AbortController();
  void inbox.run(signal);
  document.addEventListener("visibilitychange", () => document.hidden || void chat.refresh());
  await chat.open();
  await chat.watch(signal, () => !document.hidden);
}

// Other settings are another panel.
storage.onLocalChange((keys) => {
  if (keys.includes(pairingKey) || keys.includes(operatorKey)) {
    location.reload();
  }
});
const root = document.getElementById("root");
if (root !== null) {
  void start(root);
}
