/** What the link can be in, and what leads from one to the other. docs/browser-link.md has the same table; a test holds them together. */
import type { LinkState } from "../bridge/messages.js";

export type LinkEvent =
  /** A person, or a new pairing, asks for a new start. */
  | "asked"
  | "welcomed"
  /** The link broke, or an attempt failed. */
  | "lost"
  /** The same, and there has been no link for some time. */
  | "unreachable"
  | "refused"
  | "replaced"
  | "revoked"
  | "unpaired";

/** An event that a state does not list comes late and changes nothing. */
export const transitions: Readonly<Record<LinkState, Readonly<Partial<Record<LinkEvent, LinkState>>>>> = {
  unpaired: { asked: "connecting" },
  connecting: {
    asked: "connecting",
    welcomed: "online",
    lost: "waiting",
    unreachable: "offline",
    refused: "refused",
    replaced: "replaced",
    revoked: "revoked",
    unpaired: "unpaired",
  },
  online: {
    asked: "connecting",
    lost: "waiting",
    unreachable: "offline",
    refused: "refused",
    replaced: "replaced",
    revoked: "revoked",
  },
  // An attempt shows only by what comes of it: a state that flickers says less.
  waiting: {
    asked: "connecting",
    welcomed: "online",
    unreachable: "offline",
    refused: "refused",
    replaced: "replaced",
    revoked: "revoked",
    unpaired: "unpaired",
  },
  offline: {
    asked: "connecting",
    welcomed: "online",
    lost: "waiting",
    refused: "refused",
    replaced: "replaced",
    revoked: "revoked",
    unpaired: "unpaired",
  },
  refused: {
    asked: "connecting",
    welcomed: "online",
    lost: "waiting",
    unreachable: "offline",
    replaced: "replaced",
    revoked: "revoked",
    unpaired: "unpaired",
  },
  replaced: { asked: "connecting" },
  revoked: { asked: "connecting" },
};

export function after(state: LinkState, event: LinkEvent): LinkState {
  return transitions[state][event] ?? state;
}

/** In these nothing is tried until a person or a new pairing asks for it. */
export const resting: ReadonlySet<LinkState> = new Set(["unpaired", "replaced", "revoked"]);
