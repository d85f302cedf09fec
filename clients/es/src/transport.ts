/** The one way to the server: Connect over fetch, binary, with a bearer token. */
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

export interface TransportOptions {
  /** Origin of the server, for example http://127.0.0.1:3913. */
  readonly baseUrl: string;
  /** Asked before each call, so that a new token needs no new transport. Undefined sends none. */
  readonly token?: () => string | undefined;
  readonly fetch?: typeof globalThis.fetch;
}

export function createTransport(options: TransportOptions): Transport {
  const { token, fetch } = options;
  return createConnectTransport({
    baseUrl: options.baseUrl,
    // The JSON form loses what this client does not know yet; the binary one keeps it.
    useBinaryFormat: true,
    interceptors: token === undefined ? [] : [bearer(token)],
    ...(fetch === undefined ? {} : { fetch }),
  });
}

function bearer(token: () => string | undefined): Interceptor {
  return (next) => (request) => {
    const secret = token();
    if (secret !== undefined) {
      request.header.set("Authorization", `Bearer ${secret}`);
    }
    return next(request);
  };
}

/**
 * The origin of a server address that a person typed. A bare address of this machine gets http, any other one https: a
 * token must not cross a network in the clear.
 */
export function serverOrigin(input: string): string | undefined {
  const text = input.trim();
  const local = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(\/|$)/i;
  const full = /^https?:\/\//i.test(text) ? text : `${local.test(text) ? "http" : "https"}://${text}`;
  let url: URL;
  try {
    url = new URL(full);
  } catch {
    return undefined;
  }
  const bare =
    url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "" && url.password === "";
  return bare && url.hostname !== "" ? url.origin : undefined;
}
