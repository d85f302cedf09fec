/** Stands between the browser and the server, and writes down what the two say on the link. */
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { fromBinary } from "@bufbuild/protobuf";
import {
  type DeviceFrame,
  type Hello,
  ReportRequestSchema,
  type ServerFrame,
  WatchRequestSchema,
  WatchResponseSchema,
} from "@throwbar/es/pb/device";

/** One link, as it went over the wire. */
export interface TappedLink {
  readonly hello: Hello;
  readonly toDevice: ServerFrame[];
  /** Of reports that the server took, once for each number. */
  readonly toServer: DeviceFrame[];
  id: string;
  sequence: bigint;
  open: boolean;
}

const watchPath = "/throwbar.device.v1.DeviceService/Watch";
const reportPath = "/throwbar.device.v1.DeviceService/Report";

export class Tap {
  readonly port: number;
  readonly url: string;
  readonly links: TappedLink[] = [];
  /** The most streams of links that were open at the same time. */
  mostOpen = 0;
  readonly #server: Server;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Leads to a server on another port of this machine. */
  static async start(to: number): Promise<Tap> {
    const server = createServer((incoming, outgoing) => tap.#pass(to, incoming, outgoing));
    // The link's stream stays open for as long as it likes.
    server.requestTimeout = 0;
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") {
      throw new Error("no port");
    }
    const tap = new Tap(server, address.port);
    return tap;
  }

  get open(): number {
    return this.links.filter(({ open }) => open).length;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #pass(port: number, incoming: IncomingMessage, outgoing: ServerResponse): void {
    const path = incoming.url ?? "/";
    const body: Buffer[] = [];
    let link: TappedLink | undefined;
    const headers = { ...incoming.headers, host: `127.0.0.1:${port}` };
    const onward = request({ host: "127.0.0.1", port, method: incoming.method, path, headers, agent: false });
    const end = () => {
      if (link !== undefined) {
        link.open = false;
      }
    };
    incoming.on("data", (chunk: Buffer) => {
      body.push(chunk);
      onward.write(chunk);
    });
    incoming.on("end", () => {
      onward.end();
      if (path === watchPath) {
        link = this.#begin(Buffer.concat(body));
      }
    });
    // Whoever goes away first, the other side is told.
    outgoing.on("close", () => {
      end();
      onward.destroy();
    });
    onward.on("error", () => {
      end();
      outgoing.destroy();
    });
    onward.on("response", (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      if (path === reportPath && answer.statusCode === 200) {
        this.#report(Buffer.concat(body));
      }
      const read = frames((message) => link && this.#take(link, message));
      answer.on("data", (chunk: Buffer) => {
        if (link !== undefined) {
          read(chunk);
        }
        outgoing.write(chunk);
      });
      answer.on("end", () => {
        end();
        outgoing.end();
      });
      answer.on("error", () => {
        end();
        outgoing.destroy();
      });
    });
  }

  #begin(body: Buffer): TappedLink | undefined {
    const { hello } = fromBinary(WatchRequestSchema, body.subarray(5));
    if (hello === undefined) {
      return undefined;
    }
    const link: TappedLink = { hello, toDevice: [], toServer: [], id: "", sequence: 0n, open: true };
    this.links.push(link);
    this.mostOpen = Math.max(this.mostOpen, this.open);
    return link;
  }

  #take(link: TappedLink, message: Uint8Array): void {
    for (const frame of fromBinary(WatchResponseSchema, message).frames) {
      link.toDevice.push(frame);
      if (frame.kind.case === "welcome") {
        link.id = frame.kind.value.linkId;
      }
    }
  }

  #report(body: Buffer): void {
    const report = fromBinary(ReportRequestSchema, body);
    const link = this.links.find(({ id }) => id === report.linkId);
    if (link !== undefined && report.sequence > link.sequence) {
      link.sequence = report.sequence;
      link.toServer.push(...report.frames);
    }
  }
}

/** Cuts a stream into its messages: a byte of flags, four of length, the message. The last one, flagged, has no frames. */
function frames(take: (message: Uint8Array) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5) {
      const length = rest.readUInt32BE(1);
      if (rest.length < 5 + length) {
        return;
      }
      if (rest[0] === 0) {
        take(rest.subarray(5, 5 + length));
      }
      rest = rest.subarray(5 + length);
    }
  };
}

/** What is wrong with the state on a link: each delta has to count on from the snapshot or the delta before it. */
export function deltaFaults(link: TappedLink): string[] {
  const faults: string[] = [];
  let next: bigint | undefined;
  for (const { kind } of link.toServer) {
    if (kind.case === "snapshot" && kind.value.last) {
      next = kind.value.sequence + 1n;
    } else if (kind.case === "delta") {
      if (kind.value.sequence !== next) {
        faults.push(`delta ${kind.value.sequence} where ${next} had to come`);
      }
      next = kind.value.sequence + 1n;
    }
  }
  for (const { kind } of link.toDevice) {
    if (kind.case === "resync") {
      faults.push(`the server asked for a snapshot: ${kind.value.reason}`);
    }
  }
  return faults;
}
