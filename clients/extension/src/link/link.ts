/** Keeps one link to the server: opens it, follows it, and opens it again. */
import { create, fromBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";
import { callText } from "@throwbar/es/errors";
import {
  ConditionSchema,
  type DeviceFrame,
  DeviceFrameSchema,
  EndReason,
  type Hello,
  HelloSchema,
  type Welcome,
} from "@throwbar/es/pb/device";
import type { HelloReply, LinkStatus, Pairing, ToLink, ToPages, ToWorker } from "../bridge/messages.js";
import type { Clock, MessagePort } from "../platform/port.js";
import { Teller } from "../state/teller.js";
import { Backoff } from "./backoff.js";
import { Runner } from "./runner.js";
import { acknowledgement, type LinkCalls, outcomeFrame, Session, type SessionEnd } from "./session.js";
import { after, type LinkEvent, resting } from "./states.js";

export interface LinkParts {
  readonly messages: MessagePort;
  readonly clock: Clock;
  readonly calls: (pairing: Pairing) => LinkCalls;
  readonly backoff?: Backoff;
}

/** The wait after a new token that could not be had or kept. */
const rotateAgainMs = 60_000;
/** After so long without a link the server counts as unreachable. */
const unreachableMs = 30_000;

const taken = "Another browser with this pairing is connected. A copied profile has to be paired anew.";

/** How an attempt or a link ended: what that comes to, why, and how long the server asks to stay away. */
interface Ending {
  readonly event: LinkEvent;
  readonly detail: string;
  readonly afterMs: number;
}

export class Link {
  readonly #parts: LinkParts;
  readonly #backoff: Backoff;
  readonly #teller = new Teller(() => this.#ask({ to: "worker", kind: "state" }));
  readonly #runner: Runner;
  #session: Session | undefined;
  #status: LinkStatus;
  /** Since when there has been no link, by the even clock; undefined while there is one. */
  #downSince: number | undefined;
  #running = false;
  /** Whether a person or a new pairing has asked for the next attempt. */
  #asked = false;
  /** Whether the next attempt is made without a wait. */
  #hurry = false;
  /** Goes up with each word of the worker on the pause: a Hello from before that is out of date. */
  #pauses = 0;
  /** Goes up with each new start that is asked for: what was begun before it is out of date. */
  #generation = 0;
  #wake: () => void = () => {};

  constructor(parts: LinkParts) {
    this.#parts = parts;
    this.#backoff = parts.backoff ?? new Backoff();
    const since = parts.clock.wall();
    this.#status = { state: "connecting", since, detail: "", server: "", name: "", paused: false };
    this.#runner = new Runner(parts.messages, parts.clock, {
      acknowledged: (commandId) => this.#session?.push([acknowledgement(commandId)], false),
      ended: (outcome) => this.#session?.push([outcomeFrame(outcome)], true),
    });
  }

  /** Answers the other parts of the extension. */
  receive(message: ToLink): Promise<unknown> {
    switch (message.kind) {
      case "state":
        return Promise.resolve(this.#teller.take(message.push));
      case "check":
        if (!resting.has(this.#status.state)) {
          this.start();
        }
        break;
      case "restart":
        this.#restart();
        break;
      case "paused":
        this.#pause(message.paused);
        break;
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
          this.#step("lost", String(error));
        },
      );
    }
  }

  /** The machine or its network is back: nothing is waited for, and a link that may be gone is asked. */
  awake(asleepMs = 0): void {
    this.#backoff.reset();
    this.#hurry = true;
    this.#session?.probe(asleepMs);
    this.#wake();
  }

  #restart(): void {
    this.#generation++;
    this.#asked = true;
    this.#downSince = undefined;
    this.#backoff.reset();
    this.#session?.abort(new Error("a new start was asked for"));
    this.#wake();
    this.start();
  }

  #pause(paused: boolean): void {
    this.#pauses++;
    if (this.#status.paused !== paused) {
      this.#status = { ...this.#status, paused };
      this.#tellCondition();
      this.#tell(true);
    }
  }

  #tellCondition(): void {
    this.#session?.push(
      [frame({ case: "condition", value: create(ConditionSchema, { paused: this.#status.paused }) })],
      true,
    );
  }

  /** One link after the other, until the device has to rest. */
  async #loop(): Promise<void> {
    while (true) {
      const generation = this.#generation;
      const ending = await this.#attempt();
      if (generation !== this.#generation) {
        continue;
      }
      if (ending !== undefined) {
        this.#step(this.#judged(ending.event), ending.detail);
        if (resting.has(this.#status.state)) {
          return;
        }
        const wait = this.#backoff.next(ending.afterMs);
        await this.#wait(this.#hurry ? 0 : wait);
      }
    }
  }

  /** One link, from the question who this is to its end. Undefined if the next one may be tried at once. */
  async #attempt(): Promise<Ending | undefined> {
    const generation = this.#generation;
    const asked = this.#asked;
    const pauses = this.#pauses;
    this.#asked = false;
    this.#hurry = false;
    if (asked) {
      this.#step("asked", "");
    }
    this.#say({ retryAt: undefined });
    const reply = (await this.#ask({ to: "worker", kind: "hello", asked })) as HelloReply | undefined;
    if (generation !== this.#generation) {
      return undefined;
    }
    if (reply === undefined) {
      return { event: "lost", detail: "The extension's worker does not answer.", afterMs: 0 };
    }
    const { pairing, hello, replaced } = reply;
    if (pairing === undefined || hello === undefined) {
      return { event: "unpaired", detail: "", afterMs: 0 };
    }
    this.#say({ server: pairing.server, name: pairing.name });
    if (replaced === true) {
      return { event: "replaced", detail: taken, afterMs: 0 };
    }
    const said = fromBinary(HelloSchema, base64Decode(hello));
    if (pauses === this.#pauses) {
      this.#status = { ...this.#status, paused: said.paused };
    }
    const end = await this.#once(pairing, said);
    if (generation !== this.#generation || (await this.#fellBack(pairing, end))) {
      return undefined;
    }
    return this.#understand(end);
  }

  /** Follows one link to its end. */
  async #once(pairing: Pairing, hello: Hello): Promise<SessionEnd> {
    const calls = this.#parts.calls(pairing);
    let rotating = false;
    const session: Session = new Session(
      calls,
      {
        welcome: (welcome) => {
          this.#proven(pairing);
          this.#welcome(pairing, welcome, hello);
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
        resync: () => this.#teller.snapshot(),
        roundTrip: (ms) => {
          this.#status = { ...this.#status, roundTripMs: Math.max(1, Math.round(ms)) };
          this.#tell(false);
        },
      },
      this.#parts.clock,
    );
    this.#session = session;
    try {
      return await session.run(hello);
    } finally {
      this.#teller.end();
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

  /** What the end of a link, or of an attempt, comes to. */
  async #understand({ reason, error, afterMs }: SessionEnd): Promise<Ending> {
    if (error !== undefined && ConnectError.from(error).code === Code.InvalidArgument) {
      // What the server does not take is not told a second time: it is read anew.
      this.#teller.forget();
    }
    switch (reason) {
      case EndReason.REPLACED:
        await this.#ask({ to: "worker", kind: "replaced" });
        return { event: "replaced", detail: taken, afterMs };
      case EndReason.REVOKED:
        await this.#ask({ to: "worker", kind: "revoked" });
        return { event: "revoked", detail: "This device was revoked. Pair it again.", afterMs };
      case EndReason.GOING_AWAY:
        this.#backoff.reset();
        return { event: "lost", detail: "The server stops for a moment.", afterMs };
      case EndReason.BUSY:
        return { event: "lost", detail: "Many devices connect to the server at once.", afterMs };
      default:
        return { ...failure(error), afterMs };
    }
  }

  /** Nothing but time tells a server that is away for a moment from one that cannot be reached. */
  #judged(event: LinkEvent): LinkEvent {
    this.#downSince ??= this.#parts.clock.monotonic();
    return event === "lost" && this.#parts.clock.monotonic() - this.#downSince >= unreachableMs ? "unreachable" : event;
  }

  #welcome(pairing: Pairing, welcome: Welcome, hello: Hello): void {
    const session = this.#session;
    this.#backoff.reset();
    this.#downSince = undefined;
    const name = welcome.name || pairing.name;
    this.#status = { ...this.#status, name };
    this.#step("welcomed", "");
    if (name !== pairing.name) {
      void this.#ask({ to: "worker", kind: "named", deviceId: pairing.deviceId, name });
    }
    if (this.#status.paused !== hello.paused) {
      this.#tellCondition();
    }
    const keep = new Set(welcome.keepCommandIds);
    // Only what Hello named: commands that came since are on their way already.
    const drop = hello.runningCommandIds.filter((id) => !keep.has(id));
    if (drop.length > 0) {
      void this.#ask({ to: "worker", kind: "drop", commandIds: drop });
    }
    for (const commandId of keep) {
      this.#runner.resume(commandId);
    }
    this.#teller.begin({ device: hello.deviceId, boot: hello.bootTag }, (frames, urgent) =>
      session?.push(frames.map(frame), urgent),
    );
    session?.beat();
  }

  #ask(message: ToWorker): Promise<unknown> {
    return this.#parts.messages.send(message).catch(() => undefined);
  }

  #wait(ms: number): Promise<void> {
    this.#say({ retryAt: this.#parts.clock.wall() + ms });
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = () => {};
        resolve();
      };
    });
  }

  #step(event: LinkEvent, detail: string): void {
    const { state: from, since, roundTripMs, retryAt, ...rest } = this.#status;
    const state = after(from, event);
    const same = state === from;
    const kept = same && roundTripMs !== undefined ? { roundTripMs } : {};
    this.#status = { ...rest, ...kept, state, since: same ? since : this.#parts.clock.wall(), detail };
    this.#tell(!same);
  }

  /** Changes what is said beside the state. */
  #say(change: { readonly retryAt?: number | undefined; readonly server?: string; readonly name?: string }): void {
    const { retryAt: before, ...rest } = this.#status;
    const { retryAt, ...more } = change;
    this.#status = { ...rest, ...more, ...(retryAt === undefined ? {} : { retryAt }) };
    this.#tell(false);
  }

  /** Pages are told everything; the worker is woken for what its badge shows only. */
  #tell(badge: boolean): void {
    const status = this.#status;
    this.#parts.messages.tell({ to: "pages", kind: "status", status } satisfies ToPages);
    if (badge) {
      void this.#ask({ to: "worker", kind: "status", status });
    }
  }
}

function failure(error: unknown): Pick<Ending, "event" | "detail"> {
  if (error === undefined) {
    return { event: "lost", detail: "The server ended the connection." };
  }
  const { code } = ConnectError.from(error);
  const refused = code === Code.Unauthenticated || code === Code.PermissionDenied;
  return refused
    ? { event: "refused", detail: `${callText(error)} Pair this browser again.` }
    : { event: "lost", detail: error instanceof ConnectError ? callText(error) : String((error as Error).message) };
}

function frame(kind: DeviceFrame["kind"]): DeviceFrame {
  return create(DeviceFrameSchema, { kind });
}
