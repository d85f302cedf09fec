/** Exchanges a pairing code for the device's id and token. */
import { createClient, type Transport } from "@connectrpc/connect";
import { callText } from "@throwbar/es/errors";
import { DeviceService, Kind } from "@throwbar/es/pb/device";
import { createTransport, serverOrigin } from "@throwbar/es/transport";
import type { Pairing } from "../bridge/messages.js";
import type { About } from "../platform/port.js";

export interface PairInput {
  readonly server: string;
  readonly code: string;
  readonly name: string;
}

export type PairOutcome =
  | { readonly ok: true; readonly pairing: Pairing; readonly checkWord: string }
  | { readonly ok: false; readonly text: string };

export interface PairParts {
  readonly about: () => Promise<About>;
  /** Asks the browser, and it the person, for access to the server. */
  readonly allow: (origin: string) => Promise<boolean>;
  readonly transport?: (origin: string) => Transport;
}

const refuse = (text: string): PairOutcome => ({ ok: false, text });

export async function pair(input: PairInput, parts: PairParts): Promise<PairOutcome> {
  const server = serverOrigin(input.server);
  if (server === undefined) {
    return refuse("This is no server address. It looks like http://127.0.0.1:3913.");
  }
  const name = input.name.trim();
  const code = input.code.trim();
  if (name === "" || code === "") {
    return refuse("Fill in the code and a name for this browser.");
  }
  if (!(await parts.allow(server))) {
    return refuse(`Without access to ${server} this browser cannot be paired with it.`);
  }
  const transport = parts.transport?.(server) ?? createTransport({ baseUrl: server });
  try {
    const { agent, platform } = await parts.about();
    const answer = await createClient(DeviceService, transport).pair({
      code,
      name,
      kind: Kind.BROWSER,
      agent,
      platform,
    });
    const { deviceId, token, checkWord } = answer;
    return { ok: true, pairing: { server, deviceId, token, name }, checkWord };
  } catch (error) {
    return refuse(callText(error));
  }
}
