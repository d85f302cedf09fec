/** Keeps one link to the server: opens it, follows it, and opens it again. */
import { create, fromBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import { callText } from "@throwbar/es/errors";
import {
  type DeviceFrame,
  DeviceFrameSchema,
  EndReason,
  type Hello,
  HelloSchema,
  type Welcome,
} from "@throwbar/es/pb/device";
import type { HelloReply, LinkState, LinkStatus, Pairing, ToLink, ToWorker } from "../bridge/messages.js";
import type { Clock, MessagePort } from "../platform/port.js";
import { Mirror } from "../state/mirror.js";
import type { StatePush } from "../state/push.js";
import { Backoff } from "./backoff.js";
import { Runner } from "./runner.js";
import { acknowledgement, type LinkCalls, outcomeFrame, Session, type SessionEnd } from "./session.js";

export interface LinkParts {
  readonly messages: MessagePort;
  readonly clock: Clock;
  readonly calls: (pairing: Pairing) => LinkCalls;
  readonly backoff?: Backoff;
}

/** The wait after a new token that could not be had or kept. */
const rotateAgainMs = 60_000;

/** In these nothing is tried until a person or a new pairing asks for it. */
const resting: ReadonlySet<LinkState> = new Set(["unpaired", "replaced", "revoked"]);

export class Link {
  readonly #parts: LinkParts;
  readonly #backoff: Backoff;
  readonly #mirror = new Mirror();
  readonly #runner: Runner;
  #session: Session | undefined;
  /** Whether this link has had its snapshot, on which deltas count. */
  #inStep = false;
  #status: LinkStatus = {
    state: "connecting",
    since: Date.now(),
    detail: "",
    server: "",
    name: "",
    paused: false,
  };
  #running = false;
  /** Goes up with each new start that is asked for: what was begun before it is out of date. */
  #generation = 0;
  #wake: () => void = () => {};

  constructor(parts: LinkParts) {
    this.#parts = parts;
    this.#backoff = parts.backoff ?? new Backoff();
    this.#runner = new Runner(parts.messages, parts.clock, {
      acknowledged: (commandId) => this.#session?.push([acknowledgement(commandId)], false),
      ended: (outcome) => this.#session?.push([outcomeFrame(outcome)], true),
    });
  }

  /** Answers the other parts of the extension. */
  receive(message: ToLink): Promise<unknown> {
    switch (message.kind) {
      case "state":
        this.#changed(message.push);
        break;
      case "check":
        if (!resting.has(this.#status.state)) {
          this.start();
        }
        break;
      case "restart":
        this.#restart();
        break;
      case "paused":
      case "status":
        break;
    }
    return Promise.resolve(this.#status);
  }

  start(): void {
    if (!this.#running) {
      this.#running = true;
      this.#loop().then(
        () => {
          this.#running = false;
        },
        (error: unknown) => {
          this.#running = false;
          this.#say("waiting", String(error));
        },
      );
    }
  }

  #restart(): void {
    this.#generation++;
    this.#backoff.reset();
    this.#session?.abort(new Error("a new start was asked for"));
    this.#wake();
    this.start();
  }

  #changed(push: StatePush): void {
    const deltas = this.#mirror.apply(push);
    if (this.#inStep && deltas.length > 0) {
      this.#session?.push(
        deltas.map((value) => frame({ case: "delta", value })),
        false,
      );
    }
  }

  /** One link after the other, until the device has to rest. */
  async #loop(): Promise<void> {
    while (true) {
      const generation = this.#generation;
      this.#say("connecting", "");
      const reply = (await this.#ask({ to: "worker", kind: "hello" })) as HelloReply | undefined;
      if (generation !== this.#generation) {
        continue;
      }
      if (reply === undefined) {
        await this.#wait("waiting", "The extension's worker does not answer.", this.#backoff.next());
        continue;
      }
      if (reply.pairing === undefined || reply.hello === undefined) {
        this.#say("unpaired", "");
        return;
      }
      const end = await this.#once(reply.pairing, fromBinary(HelloSchema, base64Decode(reply.hello)));
      if (generation === this.#generation && !(await this.#fellBack(reply.pairing, end)) && !(await this.#after(end))) {
        return;
      }
    }
  }

  /** Follows one link to its end. */
  async #once(pairing: Pairing, hello: Hello): Promise<SessionEnd> {
    this.#status = { ...this.#status, server: pairing.server, name: pairing.name };
    const calls = this.#parts.calls(pairing);
    let rotating = false;
    const session: Session = new Session(calls, {
      welcome: (welcome) => {
        this.#proven(pairing);
        void this.#welcome(welcome, hello);
      },
      rotate: () => {
        if (!rotating) {
          rotating = true;
          void this.#rotate(pairing, calls, session);
        }
      },
      command: (request) => this.#runner.run(request),
      cancel: (commandId) => void this.#ask({ to: "worker", kind: "cancel", commandId }),
      receipt: (commandIds) => void this.#ask({ to: "worker", kind: "receipt", commandIds }),
      resync: () => void this.#sendSnapshot(),
    });
    this.#session = session;
    this.#inStep = false;
    try {
      return await session.run(hello);
    } finally {
      this.#session = undefined;
    }
  }

  /** Takes another token and keeps it before it is used. Once it is kept the worker asks for a new start with it. */
  async #rotate({ deviceId, token: previous }: Pairing, calls: LinkCalls, session: Session): Promise<void> {
    while (session.stands) {
      try {
        const token = await calls.rotate();
        if ((await this.#ask({ to: "worker", kind: "tokens", deviceId, token, previous })) === true) {
          return;
        }
      } catch {
        // As if it could not be kept: the present token goes on to work.
      }
      await new Promise((resolve) => setTimeout(resolve, rotateAgainMs));
    }
  }

  /** The server has taken the token: the one before is void. */
  #proven({ deviceId, token, previous }: Pairing): void {
    if (previous !== undefined) {
      void this.#ask({ to: "worker", kind: "tokens", deviceId, token });
    }
  }

  /** Goes back to the token before if the server does not take the present one. */
  async #fellBack({ deviceId, previous }: Pairing, { error }: SessionEnd): Promise<boolean> {
    if (previous === undefined || error === undefined || ConnectError.from(error).code !== Code.Unauthenticated) {
      return false;
    }
    return (await this.#ask({ to: "worker", kind: "tokens", deviceId, token: previous })) === true;
  }

  /** What comes after a link. False if the device has to rest. */
  async #after(end: SessionEnd): Promise<boolean> {
    switch (end.reason) {
      case EndReason.REPLACED:
        this.#say("replaced", "Another browser with the same pairing is connected.");
        return false;
      case EndReason.REVOKED:
        this.#say("revoked", "This device was revoked. Pair it again.");
        await this.#ask({ to: "worker", kind: "revoked" });
        return false;
      case EndReason.GOING_AWAY:
        this.#backoff.reset();
        await this.#wait("waiting", "The server stops for a moment.", this.#backoff.next(end.afterMs));
        return true;
      case EndReason.BUSY:
        await this.#wait("waiting", "Many devices connect to the server at once.", this.#backoff.next(end.afterMs));
        return true;
      default:
        await this.#wait(...this.#failure(end), this.#backoff.next(end.afterMs));
        return true;
    }
  }

  #failure(end: SessionEnd): [LinkState, string] {
    if (end.error === undefined) {
      return ["waiting", "The server ended the connection."];
    }
    const { code } = ConnectError.from(end.error);
    const refused = code === Code.Unauthenticated || code === Code.PermissionDenied;
    return refused
      ? ["refused", `${callText(end.error)} Pair this browser again.`]
      : ["waiting", end.error instanceof ConnectError ? callText(end.error) : String((end.error as Error).message)];
  }

  async #welcome(welcome: Welcome, hello: Hello): Promise<void> {
    this.#backoff.reset();
    const name = welcome.name || this.#status.name;
    this.#status = { ...this.#status, name };
    this.#say("online", "");
    const keep = new Set(welcome.keepCommandIds);
    // Only what Hello named: commands that came since are on their way already.
    const drop = hello.runningCommandIds.filter((id) => !keep.has(id));
    if (drop.length > 0) {
      void this.#ask({ to: "worker", kind: "drop", commandIds: drop });
    }
    for (const commandId of keep) {
      this.#runner.resume(commandId);
    }
    await this.#sendSnapshot();
  }

  async #sendSnapshot(): Promise<void> {
    const session = this.#session;
    if (!this.#mirror.filled) {
      const push = (await this.#ask({ to: "worker", kind: "state" })) as StatePush | undefined;
      if (push === undefined) {
        return;
      }
      this.#mirror.apply(push);
    }
    if (session !== undefined && session === this.#session) {
      session.push(
        this.#mirror.snapshot().map((value) => frame({ case: "snapshot", value })),
        true,
      );
      this.#inStep = true;
    }
  }

  #ask(message: ToWorker): Promise<unknown> {
    return this.#parts.messages.send(message).catch(() => undefined);
  }

  #wait(state: LinkState, detail: string, ms: number): Promise<void> {
    this.#say(state, detail);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #say(state: LinkState, detail: string): void {
    this.#status = { ...this.#status, state, detail, since: Date.now() };
    void this.#parts.messages.send({ to: "pages", kind: "status", status: this.#status }).catch(() => undefined);
  }
}

function frame(kind: DeviceFrame["kind"]): DeviceFrame {
  return create(DeviceFrameSchema, { kind });
}
