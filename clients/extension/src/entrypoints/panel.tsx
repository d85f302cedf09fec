import { createTransport } from "@throwbar/es/transport";
import {
  conversationKey,
  operatorKey,
  pairingKey,
  readConversation,
  readOperatorToken,
  readPairing,
  writeText,
} from "../bridge/settings.js";
import { askStatus, watchStatus } from "../bridge/status.js";
import { connectAgent } from "../panel/agent.js";
import { connectApprovals } from "../panel/approvals.js";
import { Chat } from "../panel/chat.js";
import { showPanel } from "../panel/view.js";
import { chromeMessages } from "../platform/chrome/messages.js";
import { openSettings } from "../platform/chrome/page.js";
import { chromeStorage } from "../platform/chrome/storage.js";

const storage = chromeStorage();

async function start(root: Element): Promise<void> {
  const [pairing, token, conversation] = await Promise.all([
    readPairing(storage.local),
    readOperatorToken(storage.local),
    readConversation(storage.local),
  ]);
  const usable = pairing !== undefined && token !== "";
  const transport = usable ? createTransport({ baseUrl: pairing.server, token: () => token }) : undefined;
  const chat = new Chat({
    agent: transport && connectAgent(transport),
    approvals: transport && connectApprovals(transport),
    ready: pairing === undefined ? "unpaired" : token === "" ? "tokenless" : "ready",
    link: undefined,
    conversation,
    keepConversation: (id) => writeText(storage.local, conversationKey, id),
  });
  watchStatus(chromeMessages, (status) => chat.setLink(status));
  void askStatus(chromeMessages).then((status) => status && chat.setLink(status));
  showPanel(root, { chat, openSettings });
  await chat.open();
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
