import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CommandFailure, callText, commandFailure } from "../src/errors.js";
import { ErrorCode } from "../src/pb/command.js";
import { DevicesService } from "../src/pb/devices.js";
import { createTransport, serverOrigin } from "../src/transport.js";

/** A server that answers every call with the same, and remembers what it was sent. */
function server(answer: () => Response) {
  const requests: Request[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    requests.push(new Request(input, init));
    return answer();
  };
  return { requests, fetch };
}

const empty = () => new Response(new Uint8Array(), { headers: { "Content-Type": "application/proto" } });

test("calls are binary, go to the server, and carry the token of the moment", async () => {
  const { requests, fetch } = server(empty);
  let token: string | undefined = "one";
  const client = createClient(DevicesService, createTransport({ baseUrl: "http://h.test", token: () => token, fetch }));
  await client.createPairingCode({});
  token = undefined;
  await client.createPairingCode({});
  expect(requests[0]?.url).toBe("http://h.test/throwbar.control.v1.DevicesService/CreatePairingCode");
  expect(requests[0]?.headers.get("Content-Type")).toBe("application/proto");
  expect(requests.map(({ headers }) => headers.get("Authorization"))).toEqual(["Bearer one", null]);
});

test.each([
  ["127.0.0.1:3913", "http://127.0.0.1:3913"],
  ["http://localhost:3913/", "http://localhost:3913"],
  ["  [::1]:80 ", "http://[::1]"],
  ["bar.example", "https://bar.example"],
  ["https://bar.example:8443", "https://bar.example:8443"],
  ["http://bar.example/path", undefined],
  ["https://me:secret@bar.example", undefined],
  ["ftp://bar.example", undefined],
  ["", undefined],
  ["not a server", undefined],
])("%j is the server %s", (input, origin) => {
  expect(serverOrigin(input)).toBe(origin);
});

test("errors are told in the server's words, and without any in ours", () => {
  expect(callText(new ConnectError("the code has expired", Code.NotFound))).toBe("the code has expired");
  expect(callText(new ConnectError("", Code.Unauthenticated))).toBe("The server does not accept this token.");
  expect(callText(new ConnectError("fetch failed", Code.Unavailable))).toBe("The server cannot be reached.");
  expect(callText(new TypeError("Failed to fetch"))).toBe("The server cannot be reached.");
  expect(callText(new Error("strange"))).toBe("strange");
});

test("whatever a command throws is a failure with a code", () => {
  const refused = new CommandFailure(ErrorCode.REFUSED, "no", true);
  expect(commandFailure(refused)).toBe(refused);
  expect(refused.toMessage()).toMatchObject({ code: ErrorCode.REFUSED, message: "no", retryable: true });
  expect(commandFailure("odd").toMessage()).toMatchObject({ code: ErrorCode.FAILED, message: "odd" });
});
