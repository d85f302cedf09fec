/** The server's side of links, driven by a test. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type DeviceFrame,
  type Hello,
  type ReportRequest,
  type ReportResponse,
  ReportResponseSchema,
  type ServerFrame,
  ServerFrameSchema,
  type WatchResponse,
  WatchResponseSchema,
} from "@throwbar/es/pb/device";
import type { LinkCalls } from "../../src/link/session.js";

export class FakeLink {
  readonly id: string;
  readonly hello: Hello;
  readonly signal: AbortSignal;
  readonly received: DeviceFrame[] = [];
  sequence = 0n;
  #queue: (ServerFrame | Error | "end")[] = [];
  #wake: () => void = () => {};

  constructor(id: string, hello: Hello, signal: AbortSignal) {
    this.id = id;
    this.hello = hello;
    this.signal = signal;
    signal.addEventListener("abort", () => this.#wake());
  }

  send(kind: NonNullable<MessageInitShape<typeof ServerFrameSchema>["kind"]>): void {
    this.#put(create(ServerFrameSchema, { kind }));
  }

  welcome(
    more: {
      readonly keepCommandIds?: string[];
      readonly heartbeatSeconds?: number;
      readonly rotateToken?: boolean;
      readonly name?: string;
    } = {},
  ): void {
    const { keepCommandIds = [], heartbeatSeconds = 15, rotateToken = false, name = "laptop" } = more;
    const heartbeat = { seconds: BigInt(heartbeatSeconds) };
    const value = { linkId: this.id, heartbeat, resync: true, keepCommandIds, name, rotateToken };
    this.send({ case: "welcome", value });
  }

  /** The connection breaks. */
  fail(error: Error = new ConnectError("gone", Code.Unavailable)): void {
    this.#put(error);
  }

  end(): void {
    this.#put("end");
  }

  #put(item: ServerFrame | Error | "end"): void {
    this.#queue.push(item);
    this.#wake();
  }

  async *frames(): AsyncGenerator<WatchResponse> {
    while (true) {
      const item = this.#queue.shift();
      if (this.signal.aborted) {
        throw new ConnectError("aborted", Code.Canceled);
      }
      if (item === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      } else if (item === "end") {
        return;
      } else if (item instanceof Error) {
        throw item;
      } else {
        yield create(WatchResponseSchema, { frames: [item] });
      }
    }
  }

  /** What the device said, of one kind. */
  of<C extends NonNullable<DeviceFrame["kind"]["case"]>>(name: C) {
    type Value = Extract<DeviceFrame["kind"], { case: C }>["value"];
    return this.received.flatMap(({ kind }) => (kind.case === name ? [kind.value as Value] : []));
  }
}

export class FakeServer implements LinkCalls {
  readonly links: FakeLink[] = [];
  /** What the next calls do instead of working. */
  readonly watchFailures: Error[] = [];
  readonly reportFailures: ("lost request" | "lost answer" | Error)[] = [];
  reports = 0;
  /** The tokens that are given out, one after the other. */
  readonly tokens: (string | Error)[] = [];

  get link(): FakeLink {
    const link = this.links.at(-1);
    if (link === undefined) {
      throw new Error("there is no link");
    }
    return link;
  }

  async *watch(hello: Hello, signal: AbortSignal): AsyncGenerator<WatchResponse> {
    const failure = this.watchFailures.shift();
    if (failure !== undefined) {
      throw failure;
    }
    const link = new FakeLink(`link${this.links.length + 1}`, hello, signal);
    this.links.push(link);
    yield* link.frames();
  }

  async rotate(): Promise<string> {
    const token = this.tokens.shift() ?? new ConnectError("no token", Code.Unavailable);
    if (token instanceof Error) {
      throw token;
    }
    return token;
  }

  async report(request: ReportRequest): Promise<ReportResponse> {
    this.reports++;
    const failure = this.reportFailures.shift();
    if (failure instanceof Error) {
      throw failure;
    }
    const unavailable = new ConnectError("gone", Code.Unavailable);
    if (failure === "lost request") {
      throw unavailable;
    }
    this.#take(request);
    if (failure === "lost answer") {
      throw unavailable;
    }
    return create(ReportResponseSchema, { sequence: request.sequence });
  }

  #take(request: ReportRequest): void {
    const link = this.links.find(({ id }) => id === request.linkId);
    if (link === undefined || link !== this.link) {
      throw new ConnectError("this link has ended", Code.NotFound);
    }
    if (request.sequence <= link.sequence) {
      return;
    }
    if (request.sequence !== link.sequence + 1n) {
      throw new ConnectError("a report is missing", Code.InvalidArgument);
    }
    link.sequence = request.sequence;
    link.received.push(...request.frames);
  }
}
