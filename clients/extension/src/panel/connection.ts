/** What the panel says of this browser's own link, and what to do about it. */
import type { LinkState, LinkStatus } from "../bridge/messages.js";
import type { Sign } from "./shown.js";
import { duration } from "./words.js";

export type Remedy = "reconnect" | "settings" | "resume";

export interface Connection {
  readonly sign: Sign;
  /** One or two words. */
  readonly text: string;
  /** What it means and what to do; empty while all is well. */
  readonly advice: string;
  readonly remedy: Remedy | undefined;
}

type Words = Omit<Connection, "text"> & { readonly text: string };

const states: Record<LinkState, Words> = {
  unpaired: {
    sign: "off",
    text: "Not paired",
    advice:
      "This browser is not paired with a server yet. Make a code with throwbar pair, and enter it in the settings.",
    remedy: "settings",
  },
  connecting: { sign: "trying", text: "Connecting…", advice: "", remedy: undefined },
  online: { sign: "on", text: "Connected", advice: "", remedy: undefined },
  waiting: {
    sign: "trying",
    text: "Reconnecting",
    advice: "The connection broke and is made again by itself. Commands that arrive in time run then.",
    remedy: "reconnect",
  },
  offline: {
    sign: "off",
    text: "Offline",
    advice: "The server has not been reached for some time. Check that it runs and that this computer has a network.",
    remedy: "reconnect",
  },
  replaced: {
    sign: "failed",
    text: "Taken over",
    advice:
      "Another browser uses the same pairing, perhaps a copied profile, and has taken the connection over. Pair one of them anew, or connect this one again.",
    remedy: "reconnect",
  },
  refused: {
    sign: "denied",
    text: "Refused",
    advice: "The server does not accept this browser's token. Pair it again in the settings.",
    remedy: "settings",
  },
  revoked: {
    sign: "denied",
    text: "Revoked",
    advice: "Somebody has revoked this device. Nothing runs here until it is paired again.",
    remedy: "settings",
  },
};

export const remedyTexts: Record<Remedy, string> = {
  reconnect: "Connect now",
  settings: "Open settings",
  resume: "Resume",
};

export function connection(link: LinkStatus | undefined, now: number): Connection {
  const words = states[link?.state ?? "connecting"];
  if (link === undefined) {
    return words;
  }
  if (link.paused && link.state !== "unpaired" && link.state !== "revoked") {
    return {
      sign: "paused",
      text: "Paused",
      advice: `You have paused this browser: it refuses commands until you resume.${words.remedy === undefined ? "" : ` ${words.text}: ${words.advice}`}`,
      remedy: "resume",
    };
  }
  if (link.retryAt !== undefined && (link.state === "waiting" || link.state === "offline")) {
    const left = Math.max(0, Math.ceil((link.retryAt - now) / 1000));
    const again = left === 0 ? "now" : `in ${duration(left)}`;
    return { ...words, text: link.state === "waiting" ? `Reconnecting ${again}` : `Offline, next try ${again}` };
  }
  return words;
}
