/** What the extension's icon says of the link: nothing where all is well. */
import type { Badge } from "../platform/port.js";
import type { LinkState, LinkStatus } from "./messages.js";
import { stateTexts } from "./status.js";

const grey = "#5f6368";
const amber = "#b26a00";
const red = "#b3261e";

const marks: Readonly<Record<LinkState, { readonly text: string; readonly colour: string }>> = {
  unpaired: { text: "pair", colour: grey },
  connecting: { text: "…", colour: grey },
  online: { text: "", colour: grey },
  waiting: { text: "…", colour: amber },
  offline: { text: "off", colour: amber },
  replaced: { text: "!", colour: red },
  refused: { text: "!", colour: red },
  revoked: { text: "!", colour: red },
};

/** Undefined is a link that cannot be asked: the part that holds it is being started. */
export function badge(status: LinkStatus | undefined): Badge {
  const state = status?.state ?? "connecting";
  const paused = status?.paused === true && state !== "unpaired" && state !== "revoked";
  const mark = paused && !(marks[state].colour === red) ? { text: "❚❚", colour: amber } : marks[state];
  return { ...mark, title: title(state, paused, status) };
}

function title(state: LinkState, paused: boolean, status: LinkStatus | undefined): string {
  const lines = ["Throwbar", stateTexts[state]];
  if (paused) {
    lines.push("Paused: commands are refused.");
  }
  if (status !== undefined && status.server !== "" && state !== "unpaired") {
    const trip = state === "online" && status.roundTripMs !== undefined ? `, ${status.roundTripMs} ms` : "";
    lines.push(`${status.name} at ${status.server}${trip}`);
  }
  if (status !== undefined && status.detail !== "") {
    lines.push(status.detail);
  }
  return lines.join("\n");
}
