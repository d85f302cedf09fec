/** The panel without an extension and a server: its events are made by the test. Bundled by the test that uses it. */

import { options } from "preact";
import { Chat } from "../../src/panel/chat.js";
import { Inbox } from "../../src/panel/inbox.js";
import { alone } from "../../src/panel/together.js";
import { showPanel } from "../../src/panel/view.js";
import { FakeAgent } from "../../test/fake/agent.js";

const agent = new FakeAgent();
const nothing = async () => {};
let ids = 0;
const chat = new Chat({
  agent,
  ready: "ready",
  link: undefined,
  conversation: "conv",
  keepConversation: nothing,
  newId: () => `message-${ids++}`, // its page is none that a browser trusts
});
const root = document.getElementById("root");
if (root !== null) {
  showPanel(root, {
    chat,
    inbox: new Inbox(undefined, alone),
    openSettings: nothing,
    reconnect: nothing,
    pause: nothing,
  });
}
void chat.open();

/** How many elements and components were compared with what they were. */
const work = { compared: 0 };
const before = options.diffed;
options.diffed = (vnode) => {
  work.compared++;
  before?.(vnode);
};
Object.assign(globalThis, { stage: { agent, chat, work } });
