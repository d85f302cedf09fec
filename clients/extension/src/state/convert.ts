/** From what the browser says to the words of the contract. */
import { Colour } from "@throwbar/es/pb/state";
import { type GroupColour, type GroupInfo, groupColours, type TabInfo, type WindowInfo } from "../platform/port.js";
import type { PlainGroup, PlainTab, PlainWindow } from "./push.js";

/** What the server keeps; it would cut the rest off. */
export const maxUrlBytes = 65_536;
const maxTitleBytes = 1024;
/** What is longer than that in an address with its page in it is the page. */
const maxDataBytes = 1024;
/** Ends an address that was cut. No browser writes it into an address: there it is %E2%80%A6. */
const cutMark = "…";

/** Where a tab is or goes to. */
export function address(tab: TabInfo): string {
  return tab.pendingUrl || tab.url;
}

export function sameAddress(tab: TabInfo, url: string): boolean {
  return tab.url === url || tab.pendingUrl === url;
}

/** An address as it leaves the browser: without a user name and password, which are nobody else's. */
export function shownAddress(url: string): string {
  return url.replace(/^((?:view-source:)?[a-z][a-z0-9+.-]*:\/\/)[^/?#\\]*@/i, "$1");
}

/** An address that fits into a message. One that was cut says so by its last letter, and can neither be opened nor compared. */
export function fittingAddress(url: string): string {
  const most = /^data:/i.test(url) ? maxDataBytes : maxUrlBytes;
  const whole = clip(url, most);
  return whole.length === url.length ? whole : clip(url, most - 3) + cutMark;
}

export const isCut = (url: string): boolean => url.endsWith(cutMark);

/** Cuts a text at a character's border, and mends halves of characters, which no message can carry. */
export function clip(text: string, maxBytes: number): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  if (whole.length * 3 <= maxBytes) {
    return whole;
  }
  const { read } = new TextEncoder().encodeInto(whole, new Uint8Array(maxBytes));
  return whole.slice(0, read);
}

export function plainTab(tab: TabInfo): PlainTab {
  const { id, windowId, groupId, active, pinned, muted, audible, discarded } = tab;
  return {
    id,
    windowId,
    ...(groupId === undefined ? {} : { groupId }),
    url: fittingAddress(shownAddress(address(tab))),
    title: clip(tab.title, maxTitleBytes),
    active,
    pinned,
    muted,
    audible,
    discarded,
    private: tab.private,
  };
}

export function plainWindow({ id, kind, focused, state, private: hidden }: WindowInfo): PlainWindow {
  return { id, kind, focused, state, private: hidden };
}

export function plainGroup(group: GroupInfo): PlainGroup {
  return { ...group, title: clip(group.title, maxTitleBytes) };
}

/** The contract numbers the colours in the order in which they are listed, from one. */
export function colourNumber(colour: GroupColour): Colour {
  return (groupColours.indexOf(colour) + 1) as Colour;
}

/** Undefined where the browser chooses. */
export function groupColour(colour: Colour): GroupColour | undefined {
  return colour === Colour.UNSPECIFIED ? undefined : groupColours[colour - 1];
}
