import { isMessage } from "../bridge/messages.js";
import { together } from "../bridge/together.js";
import { WorkerSide } from "../bridge/worker.js";
import { awake } from "../link/awake.js";
import { linkCalls } from "../link/calls.js";
import { Link } from "../link/link.js";
import { watchNetwork } from "../link/network.js";
import { watchSleep } from "../link/sleep.js";
import { about } from "../platform/chrome/about.js";
import { chromeMessages } from "../platform/chrome/messages.js";
import { chromeStorage } from "../platform/chrome/storage.js";
import { chromeBrowser, onWake, setAlarm, showBadge } from "../platform/chrome/worker.js";
import { systemClock } from "../platform/clock.js";
import { openSidebarByIcon, showSettingsOnce } from "../platform/firefox/eventpage.js";

const browser = chromeBrowser();
const messages = together(chromeMessages);
const link = new Link({ messages, clock: systemClock, calls: awake(linkCalls, browser.stayAwake) });
messages.onMessage((message) => (isMessage(message, "link") ? link.receive(message) : undefined));
const worker = new WorkerSide({
  browser,
  storage: chromeStorage(),
  messages,
  clock: systemClock,
  about,
  // It is here.
  ensureLink: () => Promise.resolve(),
  showBadge,
});
const wake = () => {
  worker.wake();
  worker.readAgain();
};
onWake(wake);
openSidebarByIcon();
showSettingsOnce();
watchNetwork(self, () => link.awake());
watchSleep(systemClock, (ms) => link.awake(ms));
link.start();
wake();
void setAlarm();
