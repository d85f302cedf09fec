import type { Channel, MessagePort } from "../port.js";

function channel(port: chrome.runtime.Port): Channel {
  return {
    name: port.name,
    post: (message) => {
      try {
        port.postMessage(message);
      } catch {
        // The other side is gone; onClose says so.
      }
    },
    onMessage: (listener) => port.onMessage.addListener((message: unknown) => listener(message)),
    onClose: (listener) =>
      port.onDisconnect.addListener(() => {
        // Reading it tells the browser that the error was seen.
        void chrome.runtime.lastError;
        listener();
      }),
    close: () => port.disconnect(),
  };
}

interface Failure {
  readonly failure: string;
}

const isFailure = (reply: unknown): reply is Failure =>
  typeof reply === "object" && reply !== null && "failure" in reply;

/** Reaches every page of the extension that is open. A message of the runtime would wake the worker each time. */
const pages = new BroadcastChannel("pages");

export const chromeMessages: MessagePort = {
  send: async (message) => {
    let reply: unknown;
    try {
      reply = await chrome.runtime.sendMessage(message);
    } catch {
      // No other part of the extension runs, or the one that took the message was stopped.
      return undefined;
    }
    if (isFailure(reply)) {
      throw new Error(reply.failure);
    }
    return reply ?? undefined;
  },
  tell: (message) => pages.postMessage(message),
  onMessage: (listener) => {
    pages.addEventListener("message", ({ data }) => void listener(data));
    chrome.runtime.onMessage.addListener((message: unknown, sender, reply: (answer: unknown) => void) => {
      const answer = sender.id === chrome.runtime.id ? listener(message) : undefined;
      if (answer === undefined) {
        return false;
      }
      answer.then(
        // Undefined would be taken for no answer.
        (value) => reply(value ?? null),
        (error: unknown) => reply({ failure: String(error) } satisfies Failure),
      );
      return true;
    });
  },
  connect: (name) => channel(chrome.runtime.connect({ name })),
  onConnect: (listener) =>
    chrome.runtime.onConnect.addListener((port) => {
      if (port.sender?.id === chrome.runtime.id) {
        listener(channel(port));
      }
    }),
};
