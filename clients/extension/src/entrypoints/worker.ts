import { WorkerSide } from "../bridge/worker.js";
import { about } from "../platform/chrome/about.js";
import { chromeMessages } from "../platform/chrome/messages.js";
import { chromeStorage } from "../platform/chrome/storage.js";
import {
  chromeBrowser,
  ensureLinkDocument,
  onWake,
  openPanelByIcon,
  setAlarm,
  showBadge,
} from "../platform/chrome/worker.js";
import { systemClock } from "../platform/clock.js";

const worker = new WorkerSide({
  browser: chromeBrowser(),
  storage: chromeStorage(),
  messages: chromeMessages,
  clock: systemClock,
  about,
  ensureLink: ensureLinkDocument,
  showBadge,
});
const wake = () => {
  worker.wake();
  worker.readAgain();
};
onWake(wake);
wake();
void setAlarm();
void openPanelByIcon();
