/** How pages learn about the connection. */
import type { MessagePort } from "../platform/port.js";
import { isMessage, type LinkState, type LinkStatus, type ToLink, type ToWorker } from "./messages.js";

/** One line for each state. */
export const stateTexts: Record<LinkState, string> = {
  unpaired: "Not paired.",
  connecting: "Connecting…",
  online: "Connected.",
  waiting: "Not connected; trying again.",
  offline: "Not connected for some time; trying again.",
  replaced: "Another browser has taken over.",
  refused: "The server refuses this browser.",
  revoked: "Revoked.",
};

/** Undefined while the part that holds the link does not run. */
export async function askStatus(messages: MessagePort): Promise<LinkStatus | undefined> {
  return (await messages.send({ to: "link", kind: "status" } satisfies ToLink)) as LinkStatus | undefined;
}

export async function restartLink(messages: MessagePort): Promise<void> {
  await messages.send({ to: "link", kind: "restart" } satisfies ToLink);
}

/** Times and speed of a connection, for people; empty where there is nothing to say. */
export function statusNote({ state, roundTripMs, retryAt, since }: LinkStatus, now: number): string {
  if (state === "online") {
    const trip = roundTripMs === undefined ? "" : `, round trip ${roundTripMs} ms`;
    return `Since ${clockTime(since)}${trip}.`;
  }
  if (retryAt !== undefined) {
    const seconds = Math.max(0, Math.ceil((retryAt - now) / 1000));
    return seconds === 0 ? "Trying now." : `Next attempt in ${seconds} ${seconds === 1 ? "second" : "seconds"}.`;
  }
  return "";
}

const clockTime = (at: number) => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** Pauses this browser or ends that; returns what is so now. Throws where it could not be stored. */
export async function setPaused(messages: MessagePort, paused: boolean): Promise<boolean> {
  const answer = await messages.send({ to: "worker", kind: "pause", paused } satisfies ToWorker);
  if (typeof answer !== "boolean") {
    throw new Error("the extension's worker did not answer");
  }
  return answer;
}

/** Calls back with each change; returns what ends that. */
export function watchStatus(messages: MessagePort, listener: (status: LinkStatus) => void): () => void {
  let on = true;
  messages.onMessage((message) => {
    if (on && isMessage(message, "pages")) {
      listener(message.status);
    }
    return undefined;
  });
  return () => {
    on = false;
  };
}
