/** What a person has set, as it is stored. */
import type { StorageArea } from "../platform/port.js";
import type { Pairing } from "./messages.js";

export const pairingKey = "pairing";
/** Number of the last dial. */
export const dialKey = "dial";
/** The device whose commands the journal has. */
export const journalOfKey = "journalOf";
/** Whether a person has paused this browser. */
export const pausedKey = "paused";
/** The pairing whose place another browser has taken. It is forgotten when this browser ends. */
export const replacedKey = "replacedBy";
/** A token of a person, with which the panel talks to the agent. The device's own token is not good for that. */
export const operatorKey = "operatorToken";
/** The conversation that the panel shows. */
export const conversationKey = "conversation";

/** Whether private windows take part. */
export const privateKey = "privateWindows";

/** What was typed in the panel and not sent, by conversation; kept while the browser runs. */
export const draftsKey = "drafts";

export async function readPairing(local: StorageArea): Promise<Pairing | undefined> {
  return (await local.get([pairingKey]))[pairingKey] as Pairing | undefined;
}

async function readText(local: StorageArea, key: string): Promise<string> {
  const value = (await local.get([key]))[key];
  return typeof value === "string" ? value : "";
}

export async function readPrivate(local: StorageArea): Promise<boolean> {
  return (await local.get([privateKey]))[privateKey] === true;
}

export const readOperatorToken = (local: StorageArea): Promise<string> => readText(local, operatorKey);

export const readConversation = (local: StorageArea): Promise<string> => readText(local, conversationKey);

export async function readDrafts(session: StorageArea): Promise<Record<string, string>> {
  const kept = (await session.get([draftsKey]))[draftsKey];
  return typeof kept === "object" && kept !== null ? (kept as Record<string, string>) : {};
}

/** An empty text is not kept. */
export function writeText(local: StorageArea, key: string, value: string): Promise<void> {
  return value === "" ? local.remove([key]) : local.set({ [key]: value });
}
