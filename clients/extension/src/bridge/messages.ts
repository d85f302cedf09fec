/** What the parts of the extension say to each other. All of it is JSON. */
import type { StatePush } from "../state/push.js";

/** Who reaches the server, and as whom. */
export interface Pairing {
  readonly server: string;
  readonly deviceId: string;
  readonly token: string;
  /** The token before, which works until the present one is first used; undefined once the server has taken that. */
  readonly previous?: string;
  /** As the person named the device. */
  readonly name: string;
}

export type LinkState =
  /** No pairing code was entered yet. */
  | "unpaired"
  /** Tries. */
  | "connecting"
  | "online"
  /** Was connected a moment ago, or has only begun to try; waits for the next attempt. */
  | "waiting"
  /** The server could not be reached for some time. It is tried further, less often. */
  | "offline"
  /** Another link of the same device has taken over. */
  | "replaced"
  /** The server does not accept the device. */
  | "refused"
  | "revoked";

export interface LinkStatus {
  readonly state: LinkState;
  /** When that began, in milliseconds since 1970. */
  readonly since: number;
  /** Why it is so, where that says more than the state. */
  readonly detail: string;
  readonly server: string;
  /** The device's name, as the server has it. */
  readonly name: string;
  /** A person has paused this browser: commands are refused. That is so in every state. */
  readonly paused: boolean;
  /** How long the last report took to be answered, in milliseconds; only while connected. */
  readonly roundTripMs?: number;
  /** When the next attempt is made, in milliseconds since 1970; only while waiting for it. */
  readonly retryAt?: number;
}

/** The tokens that a device is to keep from now on. */
export type DeviceTokens = Pick<Pairing, "deviceId" | "token" | "previous">;

export type ToWorker =
  /** What a new link begins with. Asked says that a person, or a new pairing, wants one: then nothing speaks against it. */
  | { readonly to: "worker"; readonly kind: "hello"; readonly asked: boolean }
  | { readonly to: "worker"; readonly kind: "drop"; readonly commandIds: readonly string[] }
  | { readonly to: "worker"; readonly kind: "cancel"; readonly commandId: string }
  | { readonly to: "worker"; readonly kind: "receipt"; readonly commandIds: readonly string[] }
  /** All of the state is needed. It comes as a push. */
  | { readonly to: "worker"; readonly kind: "state" }
  | ({ readonly to: "worker"; readonly kind: "tokens" } & DeviceTokens)
  /** A person pauses this browser or ends that. Answered with what is so from then on. */
  | { readonly to: "worker"; readonly kind: "pause"; readonly paused: boolean }
  /** The server has the device under another name. */
  | { readonly to: "worker"; readonly kind: "named"; readonly deviceId: string; readonly name: string }
  /** Another link of this device has taken over. */
  | { readonly to: "worker"; readonly kind: "replaced" }
  | { readonly to: "worker"; readonly kind: "revoked" }
  /** The state has changed, or the pause. */
  | { readonly to: "worker"; readonly kind: "status"; readonly status: LinkStatus };

/** What the link needs for a new start; without a pairing there is none. */
export interface HelloReply {
  readonly pairing?: Pairing;
  /** The encoded Hello. */
  readonly hello?: string;
  /** Another browser has taken over since this one was started: only a person takes that back. */
  readonly replaced?: boolean;
}

export type ToLink =
  /** Answered with whether it was taken. */
  | { readonly to: "link"; readonly kind: "state"; readonly push: StatePush }
  /** Something has woken the worker: there should be a link, or a wait for the next attempt. */
  | { readonly to: "link"; readonly kind: "check" }
  /** Whether a person has paused this browser. */
  | { readonly to: "link"; readonly kind: "paused"; readonly paused: boolean }
  /** The pairing is another one, or a person asks for a new start. */
  | { readonly to: "link"; readonly kind: "restart" }
  | { readonly to: "link"; readonly kind: "status" };

export type ToPages = { readonly to: "pages"; readonly kind: "status"; readonly status: LinkStatus };

export type Message = ToWorker | ToLink | ToPages;

export function isMessage<T extends Message["to"]>(message: unknown, to: T): message is Extract<Message, { to: T }> {
  return typeof message === "object" && message !== null && (message as { to?: unknown }).to === to;
}

/** The channel on which one command is handed to the worker. It lives as long as the command runs. */
export const commandChannel = "command";

export type CommandOrder =
  | { readonly kind: "run"; readonly request: string; readonly leftMs: number; readonly receivedAt: number }
  | { readonly kind: "resume"; readonly commandId: string }
  /** Whether the worker is there still. */
  | { readonly kind: "ping" };

export type CommandNews =
  /** The worker has the order, or the ping. */
  | { readonly kind: "here" }
  | { readonly kind: "acknowledged" }
  /** The encoded Outcome. */
  | { readonly kind: "outcome"; readonly outcome: string };
