/** Runs commands, each at most once, and answers a repeat from the journal. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { type ActionOf, type Case, execute, type Handlers } from "@throwbar/es/commands";
import { CommandFailure, commandFailure } from "@throwbar/es/errors";
import { check } from "@throwbar/es/pb/checks";
import { type Action, ErrorCode, type Result, ResultSchema } from "@throwbar/es/pb/command";
import { type CommandRequest, CommandRequestSchema, type Outcome, OutcomeSchema } from "@throwbar/es/pb/device";
import type { Ended, Journal, Started } from "../journal/journal.js";
import type { BrowserPort, Clock, StorageArea } from "../platform/port.js";
import type { Identity } from "../state/identity.js";
import { Asked } from "./asked.js";
import type { Context, Recovery } from "./context.js";
import { Deadline, OutOfTime, pause } from "./deadline.js";
import { handlers, handlersFor, recoveries } from "./handlers.js";
import { Places } from "./places.js";

/** A command as the link hands it over. */
export interface Delivery {
  readonly request: CommandRequest;
  readonly leftMs: number;
  /** Wall clock when the device got it. */
  readonly receivedAt: number;
}

export interface ExecutorParts {
  readonly browser: BrowserPort;
  readonly clock: Clock;
  readonly journal: Journal;
  /** What is known for as long as the browser runs. */
  readonly session: StorageArea;
  readonly identity: () => Promise<Identity>;
  /** The id that the browser gave to a tab later. */
  readonly current: (id: number) => number;
  /** Why nothing may be begun now; undefined if it may. What has begun goes on. */
  readonly refusal?: () => CommandFailure | undefined;
  /** Sends what has changed, so that who has an outcome sees its effect in the state, too. */
  readonly flush: () => Promise<void>;
}

interface Running {
  readonly outcome: Promise<Outcome>;
  readonly stop: AbortController;
  cancelled: boolean;
}

/** How a command is done, the first time or after the worker was stopped. */
interface Plan {
  readonly request: CommandRequest;
  readonly started: Started;
  readonly deadline: Deadline;
  /** Only reads what came of it: that changes nothing, and may be done after the deadline. */
  readonly reads: boolean;
  readonly run: (context: Context) => Promise<Result | undefined>;
}

/** A worker without a call of the browser's API for 30 seconds is stopped, whatever it is doing. */
const awakeEveryMs = 15_000;
/** How long reading may take when there is no time left. */
const readingMs = 5000;
/** How long an answer waits for the state to go first. */
const flushMs = 1000;

export class Executor {
  readonly #parts: ExecutorParts;
  readonly #asked: Asked;
  readonly #places: Places;
  readonly #running = new Map<string, Running>();

  /** Has to be made while the worker starts: it listens to the browser. */
  constructor(parts: ExecutorParts) {
    this.#parts = parts;
    this.#asked = new Asked(parts.browser, parts.session, parts.clock);
    this.#places = new Places(parts.session);
  }

  /** Runs a command, or joins it while it runs. Calls acknowledged once it is written down. */
  deliver(delivery: Delivery, acknowledged: () => void): Promise<Outcome> {
    const { commandId } = delivery.request;
    return this.#join(commandId, acknowledged, (running) => this.#accept(delivery, running, acknowledged));
  }

  /** Takes up a command that the journal has, after the worker was stopped. */
  resume(commandId: string): Promise<Outcome> {
    const ignore = () => {};
    return this.#join(commandId, ignore, async (running) => {
      const entry = await this.#parts.journal.get(commandId);
      switch (entry?.state) {
        case "ended":
          return decodeOutcome(entry);
        case "started":
          return this.#takeUp(entry, new Deadline(this.#parts.clock, entry.leftMs, entry.receivedAt), running);
        default:
          return failed(
            commandId,
            new CommandFailure(ErrorCode.INTERRUPTED, "the device knows nothing of this command"),
          );
      }
    });
  }

  /** Stops a command where it can be stopped. What has been done is reported. */
  cancel(commandId: string): void {
    const running = this.#running.get(commandId);
    if (running !== undefined) {
      running.cancelled = true;
      running.stop.abort();
    }
  }

  /** Ends commands that were running before the last link and that the server has given up. */
  async drop(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      if (this.#running.has(id)) {
        this.cancel(id);
      } else if ((await this.#parts.journal.get(id))?.state === "started") {
        await this.#finish(failed(id, new CommandFailure(ErrorCode.CANCELLED, "the server gave it up")));
      }
    }
  }

  #join(id: string, acknowledged: () => void, run: (running: Running) => Promise<Outcome>): Promise<Outcome> {
    const already = this.#running.get(id);
    if (already !== undefined) {
      acknowledged();
      return already.outcome;
    }
    const awake = setInterval(() => void this.#parts.browser.stayAwake(), awakeEveryMs);
    const running: Running = {
      stop: new AbortController(),
      cancelled: false,
      // Begun a moment later, when the record of it exists.
      outcome: Promise.resolve()
        .then(() => run(running))
        .catch((error: unknown) => failed(id, commandFailure(error)))
        .finally(() => {
          clearInterval(awake);
          this.#running.delete(id);
        }),
    };
    this.#running.set(id, running);
    return running.outcome;
  }

  async #accept(delivery: Delivery, running: Running, acknowledged: () => void): Promise<Outcome> {
    const { request, leftMs, receivedAt } = delivery;
    const deadline = new Deadline(this.#parts.clock, leftMs, receivedAt);
    const known = await this.#parts.journal.get(request.commandId);
    if (known?.state === "ended") {
      return decodeOutcome(known);
    }
    if (known?.state === "started") {
      acknowledged();
      return this.#takeUp(known, deadline, running);
    }
    const refusal = refuse(request.action, deadline, handlersFor(this.#parts.browser)) ?? this.#parts.refusal?.();
    if (refusal !== undefined) {
      return failed(request.commandId, refusal);
    }
    const { boot } = await this.#parts.identity();
    const encoded = base64Encode(toBinary(CommandRequestSchema, request));
    const first = { boot, request: encoded, leftMs, receivedAt };
    const started = await this.#parts.journal.start(request.commandId, first).catch(full);
    acknowledged();
    return this.#carryOut({ request, started, deadline, reads: false, run: fresh(request) }, running);
  }

  /** Decides about a command whose end is not known: done again, found out by reading, or given up. */
  async #takeUp(started: Started, deadline: Deadline, running: Running): Promise<Outcome> {
    const request = fromBinary(CommandRequestSchema, base64Decode(started.request));
    const name = request.action?.kind.case;
    const how = name === undefined ? "interrupted" : recoveries[name];
    const { begun } = started;
    if (begun === undefined || how === "again") {
      // Ids of an earlier start of the browser are not found, so nothing is done to a stranger's tab.
      return this.#carryOut({ request, started, deadline, reads: false, run: fresh(request) }, running);
    }
    if (how === "interrupted" || started.boot !== (await this.#parts.identity()).boot) {
      return this.#finish(failed(request.commandId, interrupted()));
    }
    const sinceBegun = () => this.#parts.clock.wall() - begun.at;
    const run = (context: Context) => recover(present(request), { ...context, note: begun.note, sinceBegun });
    return this.#carryOut({ request, started, deadline, reads: true, run }, running);
  }

  async #carryOut(plan: Plan, running: Running): Promise<Outcome> {
    const toAnswer = plan.deadline.toAnswer();
    const timer = setTimeout(() => running.stop.abort(), plan.reads ? Math.max(toAnswer, readingMs) : toAnswer);
    const outcome = await this.#attempt(plan, running);
    clearTimeout(timer);
    const told = Promise.race([this.#parts.flush().catch(() => {}), pause(flushMs)]);
    await Promise.all([told, this.#finish(outcome)]);
    return outcome;
  }

  async #attempt(plan: Plan, running: Running): Promise<Outcome> {
    const { browser, current, identity, journal } = this.#parts;
    const { commandId, saved } = plan.request;
    let entry = plan.started;
    let begun = entry.begun !== undefined;
    const mayGoOn = () => {
      mayBegin(plan.deadline, running);
      const refusal = begun ? undefined : this.#parts.refusal?.();
      if (refusal !== undefined) {
        throw refusal;
      }
    };
    const begin = async (note: unknown) => {
      mayGoOn();
      entry = await journal.begin(commandId, entry, note).catch(full);
      // Writing takes time, and a cancellation or a pause may have come meanwhile.
      mayGoOn();
      begun = true;
    };
    try {
      if (!plan.reads) {
        mayGoOn();
      }
      const { signal } = running.stop;
      const known = { asked: this.#asked, places: this.#places, current, saved };
      const context = { browser, identity: await identity(), deadline: plan.deadline, signal, begin, ...known };
      const result = await plan.run(context);
      return result === undefined
        ? failed(commandId, unsupported())
        : create(OutcomeSchema, { commandId, outcome: { case: "result", value: result } });
    } catch (error) {
      return failed(commandId, error instanceof OutOfTime ? interrupted() : commandFailure(error));
    }
  }

  async #finish(outcome: Outcome): Promise<Outcome> {
    await this.#parts.journal.end(outcome.commandId, base64Encode(toBinary(OutcomeSchema, outcome)));
    return outcome;
  }
}

function mayBegin(deadline: Deadline, running: Running): void {
  if (running.cancelled) {
    throw new CommandFailure(ErrorCode.CANCELLED, "it was cancelled before it was done");
  }
  if (deadline.passed) {
    throw expired();
  }
}

const fresh = (request: CommandRequest) => (context: Context) => execute(handlers, present(request), context);

async function recover(action: Action, recovery: Recovery): Promise<Result | undefined> {
  const name = action.kind.case;
  const how = name === undefined ? undefined : recoveries[name];
  if (name === undefined || typeof how !== "function") {
    return undefined;
  }
  // Name and value belong together, but the compiler does not follow that through the lookup.
  const run = how as (action: ActionOf<Case>, recovery: Recovery) => Promise<unknown>;
  const value = await run(action.kind.value, recovery);
  return create(ResultSchema, { kind: { case: name, value } as Exclude<Result["kind"], { case: undefined }> });
}

/** Why a command is not taken on at all. */
function refuse(action: Action | undefined, deadline: Deadline, able: Handlers<Context>): CommandFailure | undefined {
  const { kind } = action ?? {};
  if (kind?.case === undefined || typeof able[kind.case] !== "function") {
    return unsupported();
  }
  if (deadline.passed) {
    return expired();
  }
  const [first] = check(kind.value);
  return first && new CommandFailure(ErrorCode.INVALID, `${first.field} ${first.text}`);
}

const unsupported = () => new CommandFailure(ErrorCode.UNSUPPORTED, "this browser does not do this command");
const expired = () => new CommandFailure(ErrorCode.EXPIRED, "its time to live ran out before it was done");
const interrupted = () =>
  new CommandFailure(ErrorCode.INTERRUPTED, "it was begun, and the browser does not say how it ended");

/** Without a record of it a command could be done twice. */
function full(error: unknown): never {
  throw new CommandFailure(
    ErrorCode.FAILED,
    `the extension's storage takes no more, so this was not done: ${commandFailure(error).message}`,
    true,
  );
}

function present(request: CommandRequest): Action {
  if (request.action === undefined) {
    throw unsupported();
  }
  return request.action;
}

function failed(commandId: string, failure: CommandFailure): Outcome {
  return create(OutcomeSchema, { commandId, outcome: { case: "error", value: failure.toMessage() } });
}

export function decodeOutcome(entry: Ended): Outcome {
  return fromBinary(OutcomeSchema, base64Decode(entry.outcome));
}
