import { isMessage } from "../bridge/messages.js";
import { linkCalls } from "../link/calls.js";
import { Link } from "../link/link.js";
import { watchNetwork } from "../link/network.js";
import { watchSleep } from "../link/sleep.js";
import { chromeMessages } from "../platform/chrome/messages.js";
import { systemClock } from "../platform/clock.js";

const link = new Link({ messages: chromeMessages, clock: systemClock, calls: linkCalls });
chromeMessages.onMessage((message) => (isMessage(message, "link") ? link.receive(message) : undefined));
watchNetwork(window, () => link.awake());
watchSleep(systemClock, (ms) => link.awake(ms));
link.start();
