/** Keeps the context that holds a link from being put away while the link stands. */
import type { WatchResponse } from "@throwbar/es/pb/device";
import type { Pairing } from "../bridge/messages.js";
import type { LinkCalls } from "./session.js";

/**
 * The same calls, with a call of the browser's API for each frame that the server sends. Bytes that arrive do not count as a
 * sign of life, calls of the API do, and the server sends a heartbeat at least every 15 seconds, half of the time after which an
 * idle page is put away.
 */
export function awake(
  calls: (pairing: Pairing) => LinkCalls,
  stayAwake: () => Promise<void>,
): (pairing: Pairing) => LinkCalls {
  return (pairing) => {
    const plain = calls(pairing);
    return { ...plain, watch: (hello, signal) => each(plain.watch(hello, signal), stayAwake) };
  };
}

async function* each(
  frames: AsyncIterable<WatchResponse>,
  stayAwake: () => Promise<void>,
): AsyncIterable<WatchResponse> {
  for await (const frame of frames) {
    // A refusal costs nothing but the sign of life.
    void stayAwake().catch(() => {});
    yield frame;
  }
}
