import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { DeviceService, WatchRequestSchema } from "@throwbar/es/pb/device";
import { createTransport } from "@throwbar/es/transport";
import type { Pairing } from "../bridge/messages.js";
import type { LinkCalls } from "./session.js";

/** A link's calls over the network. */
export function linkCalls(pairing: Pairing): LinkCalls {
  const client = createClient(DeviceService, createTransport({ baseUrl: pairing.server, token: () => pairing.token }));
  return {
    watch: (hello, signal) => client.watch(create(WatchRequestSchema, { hello }), { signal }),
    report: (request, signal) => client.report(request, { signal }),
    rotate: async () => (await client.rotateToken({}, { timeoutMs: 10_000 })).token,
  };
}
