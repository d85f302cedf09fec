/** From what the browser says to the words of the contract. */
import { Colour } from "@throwbar/es/pb/state";
import { type GroupColour, type GroupInfo, groupColours, type TabInfo, type WindowInfo } from "../platform/port.js";
import { compositeId, type Identity } from "./identity.js";
import type { PlainGroup, PlainTab, PlainWindow } from "./push.js";

/** What the server takes; the rest would make a message that it refuses. */
export const maxUrlBytes = 65_536;
const maxTitleBytes = 1024;

/** Where a tab is or goes to. */
export function address(tab: TabInfo): string {
  return tab.pendingUrl || tab.url;
}

export function sameAddress(tab: TabInfo, url: string): boolean {
  return tab.url === url || tab.pendingUrl === url;
}

/** Cuts a text at a character's border, and mends halves of characters, which no message can carry. */
export function clip(text: string, maxBytes: number): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  if (whole.length * 3 <= maxBytes) {
    return whole;
  }
  const { read } = new TextEncoder().encodeInto(whole, new Uint8Array(maxBytes));
  return whole.slice(0, read);
}

export function plainTab(identity: Identity, tab: TabInfo): PlainTab {
  return {
    tabId: compositeId(identity, "tab", tab.id),
    windowId: compositeId(identity, "window", tab.windowId),
    groupId: tab.groupId === undefined ? "" : compositeId(identity, "group", tab.groupId),
    index: tab.index,
    url: clip(address(tab), maxUrlBytes),
    title: clip(tab.title, maxTitleBytes),
    active: tab.active,
    pinned: tab.pinned,
    muted: tab.muted,
    audible: tab.audible,
    discarded: tab.discarded,
  };
}

export function plainWindow(identity: Identity, window: WindowInfo): PlainWindow {
  const { kind, focused, state } = window;
  return { windowId: compositeId(identity, "window", window.id), kind, focused, state };
}

export function plainGroup(identity: Identity, group: GroupInfo): PlainGroup {
  return {
    groupId: compositeId(identity, "group", group.id),
    windowId: compositeId(identity, "window", group.windowId),
    title: clip(group.title, maxTitleBytes),
    colour: colourNumber(group.colour),
    collapsed: group.collapsed,
  };
}

/** The contract numbers the colours in the order in which they are listed, from one. */
function colourNumber(colour: GroupColour): Colour {
  return (groupColours.indexOf(colour) + 1) as Colour;
}

/** Undefined where the browser chooses. */
export function groupColour(colour: Colour): GroupColour | undefined {
  return colour === Colour.UNSPECIFIED ? undefined : groupColours[colour - 1];
}
