/** The worker's side: it runs commands, reads the browser's state, and sees to it that there is a link. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { supported } from "@throwbar/es/commands";
import { newBootTag } from "@throwbar/es/ids";
import { catalogueDigest } from "@throwbar/es/pb/checks";
import { CommandRequestSchema, type Hello, HelloSchema, type Outcome, OutcomeSchema } from "@throwbar/es/pb/device";
import { decodeOutcome, Executor } from "../commands/executor.js";
import { handlersFor } from "../commands/handlers.js";
import { Journal } from "../journal/journal.js";
import type { About, Badge, BrowserPort, Channel, Clock, MessagePort, StoragePort } from "../platform/port.js";
import { discreet } from "../platform/private.js";
import { Collector } from "../state/collector.js";
import type { Identity } from "../state/identity.js";
import type { StatePush } from "../state/push.js";
import { badge } from "./badge.js";
import {
  type CommandNews,
  type CommandOrder,
  commandChannel,
  type DeviceTokens,
  type HelloReply,
  isMessage,
  type LinkStatus,
  type Pairing,
  type ToWorker,
} from "./messages.js";
import { Pause } from "./pause.js";
import { Replacements } from "./replacements.js";
import { dialKey, journalOfKey, pairingKey, privateKey, readPairing, readPrivate, replacedKey } from "./settings.js";
import { restartLink } from "./status.js";

export interface WorkerParts {
  readonly browser: BrowserPort;
  readonly storage: StoragePort;
  readonly messages: MessagePort;
  readonly clock: Clock;
  readonly about: () => Promise<About>;
  /** Makes sure that the part that holds the link runs. */
  readonly ensureLink: () => Promise<void>;
  readonly showBadge: (badge: Badge) => Promise<void>;
}

const bootKey = "boot";
/** Events come in floods; the link is looked after once in this time. */
const wakeEveryMs = 5000;
/** Outcomes that a Hello carries at most, and how much they may be together: a message has a limit. */
const maxHelloOutcomes = 1000;
const maxHelloChars = 2_000_000;

export class WorkerSide {
  readonly #parts: WorkerParts;
  readonly #journal: Journal;
  readonly #executor: Executor;
  readonly #collector: Collector;
  readonly #replacements: Replacements;
  readonly #pause: Pause;
  #boot: Promise<string> | undefined;
  #paired: Promise<Pairing | undefined> | undefined;
  /** Whether private windows take part. */
  #told: Promise<boolean> | undefined;
  #woken = Number.NEGATIVE_INFINITY;

  /** Registers its listeners at once: the browser wakes a worker only for events that it listened to while it started. */
  constructor(parts: WorkerParts) {
    const { storage, messages, clock } = parts;
    const browser = discreet(parts.browser, () => this.#openly());
    this.#parts = parts;
    this.#journal = new Journal(storage.local, clock);
    this.#replacements = new Replacements(storage.session);
    this.#collector = new Collector({
      browser,
      identity: () => this.#identityIfPaired(),
      send: (push) => this.#handOn(push),
      replaced: () => this.#replacements.all(),
    });
    this.#pause = new Pause(storage.local, (paused) => void messages.send({ to: "link", kind: "paused", paused }));
    this.#executor = new Executor({
      browser,
      clock,
      journal: this.#journal,
      session: storage.session,
      identity: () => this.#identity(),
      current: (id) => this.#replacements.current(id),
      flush: () => this.#collector.flush(),
      refusal: () => this.#pause.refusal(),
    });
    browser.onChange((change) => {
      if (change.kind === "replaced") {
        this.#replacements.add(change.id, change.by);
      }
      this.#collector.changed(change);
      this.wake();
    });
    messages.onMessage((message) => {
      this.wake();
      return isMessage(message, "worker") ? this.#receive(message) : undefined;
    });
    messages.onConnect((channel) => {
      this.wake();
      if (channel.name === commandChannel) {
        this.#serve(channel);
      }
    });
    storage.onLocalChange((keys) => {
      if (keys.includes(pairingKey)) {
        void this.#pairingChanged();
      }
      if (keys.includes(privateKey)) {
        this.#told = undefined;
        this.#collector.everything();
        void this.#collector.flush();
      }
    });
  }

  /** Something has woken the worker. */
  wake(): void {
    const now = this.#parts.clock.monotonic();
    if (now - this.#woken < wakeEveryMs) {
      return;
    }
    this.#woken = now;
    void this.#lookAfter().catch(() => {});
  }

  /** Sees to it that there is a link, or a wait for one, and that the badge says so. */
  async #lookAfter(): Promise<void> {
    const { ensureLink, messages } = this.#parts;
    await Promise.all([ensureLink(), this.#pause.ready]);
    const status = (await messages.send({ to: "link", kind: "check" })) as LinkStatus | undefined;
    const { paused } = this.#pause;
    if (status !== undefined && status.paused !== paused) {
      await messages.send({ to: "link", kind: "paused", paused });
    }
    await this.#show(status === undefined ? undefined : { ...status, paused });
  }

  #show(status: LinkStatus | undefined): Promise<void> {
    return this.#parts.showBadge(badge(status));
  }

  /** Without the part that holds the link nobody takes the state; once that runs it asks for all of it. */
  async #handOn(push: StatePush): Promise<boolean | undefined> {
    const taken = (await this.#parts.messages.send({ to: "link", kind: "state", push })) as boolean | undefined;
    if (taken === undefined) {
      await this.#parts.ensureLink();
    }
    return taken;
  }

  /** Reads everything again: an earlier worker may have been stopped before it could hand on what it had seen. */
  readAgain(): void {
    this.#collector.everything();
  }

  async #pairingChanged(): Promise<void> {
    const before = await this.#paired;
    this.#paired = undefined;
    const now = await this.#pairing();
    if (before === undefined ? now === undefined : now !== undefined && sameLink(before, now)) {
      return;
    }
    await this.#parts.ensureLink();
    await restartLink(this.#parts.messages);
  }

  async #receive(message: ToWorker): Promise<unknown> {
    switch (message.kind) {
      case "hello":
        return this.#hello(message.asked);
      case "drop":
        return this.#executor.drop(message.commandIds);
      case "cancel":
        return this.#executor.cancel(message.commandId);
      case "receipt":
        return this.#journal.receipt(message.commandIds);
      case "state":
        return this.#collector.again();
      case "tokens":
        return this.#keepTokens(message);
      case "named":
        return this.#keepName(message.deviceId, message.name);
      case "pause":
        return this.#pause.set(message.paused);
      case "replaced":
        return this.#parts.storage.session.set({ [replacedKey]: true });
      case "revoked":
        // Known before it is gone: the link, which says why, is not to start anew for it.
        this.#paired = Promise.resolve(undefined);
        return this.#parts.storage.local.remove([pairingKey]);
      case "status":
        return this.#show(message.status);
    }
  }

  /** Remembers how the server calls the device, for the time when it cannot be asked. */
  async #keepName(deviceId: string, name: string): Promise<void> {
    const { local } = this.#parts.storage;
    await this.#pairing(); // with it this change is known to be of the name only
    const pairing = await readPairing(local);
    if (pairing?.deviceId === deviceId) {
      await local.set({ [pairingKey]: { ...pairing, name } satisfies Pairing });
    }
  }

  /** True once the tokens are stored. The change of the pairing starts the link anew. */
  async #keepTokens({ deviceId, token, previous }: DeviceTokens): Promise<boolean> {
    const { local } = this.#parts.storage;
    await this.#pairing();
    const pairing = await readPairing(local);
    if (pairing?.deviceId !== deviceId) {
      return false;
    }
    const { server, name } = pairing;
    const kept: Pairing = { server, deviceId, token, name, ...(previous === undefined ? {} : { previous }) };
    await local.set({ [pairingKey]: kept });
    return true;
  }

  #serve(channel: Channel): void {
    channel.onMessage((message) => {
      const order = message as CommandOrder;
      const news = (each: CommandNews) => channel.post(each);
      news({ kind: "here" });
      if (order.kind === "ping") {
        return;
      }
      void this.#pause.ready
        .then(() => this.#run(order, () => news({ kind: "acknowledged" })))
        .then((ended) => news({ kind: "outcome", outcome: base64Encode(toBinary(OutcomeSchema, ended)) }));
    });
  }

  #run(order: Exclude<CommandOrder, { kind: "ping" }>, acknowledged: () => void): Promise<Outcome> {
    if (order.kind === "resume") {
      return this.#executor.resume(order.commandId);
    }
    const request = fromBinary(CommandRequestSchema, base64Decode(order.request));
    return this.#executor.deliver({ request, leftMs: order.leftMs, receivedAt: order.receivedAt }, acknowledged);
  }

  async #hello(asked: boolean): Promise<HelloReply> {
    const pairing = await this.#pairing();
    if (pairing === undefined) {
      return {};
    }
    const replaced = await this.#replaced(asked);
    const hello = await this.#describe(pairing);
    return { pairing, hello: base64Encode(toBinary(HelloSchema, hello)), ...(replaced ? { replaced } : {}) };
  }

  /** Whether another browser has this one's place, and nobody has asked for it back. */
  async #replaced(asked: boolean): Promise<boolean> {
    const { session } = this.#parts.storage;
    if (asked) {
      await session.remove([replacedKey]);
      return false;
    }
    return (await session.get([replacedKey]))[replacedKey] === true;
  }

  /** A journal of an earlier pairing is dropped before anything of it is said. */
  async #ownJournal({ deviceId }: Pairing): Promise<void> {
    const { local } = this.#parts.storage;
    const of = (await local.get([journalOfKey]))[journalOfKey];
    if (of !== deviceId) {
      if (of !== undefined) {
        await this.#journal.forget();
      }
      await local.set({ [journalOfKey]: deviceId });
    }
  }

  async #describe(pairing: Pairing): Promise<Hello> {
    await this.#ownJournal(pairing);
    const [about, boot, dial, entries] = await Promise.all([
      this.#parts.about(),
      this.#bootTag(),
      this.#nextDial(),
      this.#journal.load(),
      this.#pause.ready,
    ]);
    const outcomes: Outcome[] = [];
    let chars = 0;
    for (const [, entry] of entries.reverse()) {
      if (entry.state === "ended" && !entry.receipted && outcomes.length < maxHelloOutcomes) {
        chars += entry.outcome.length;
        if (chars > maxHelloChars) {
          break;
        }
        outcomes.push(decodeOutcome(entry));
      }
    }
    return create(HelloSchema, {
      ...about,
      deviceId: pairing.deviceId,
      bootTag: boot,
      dial,
      catalogueDigest,
      time: timestampNow(),
      actions: supported(handlersFor(this.#parts.browser)),
      runningCommandIds: entries.flatMap(([id, entry]) => (entry.state === "started" ? [id] : [])),
      outcomes,
      paused: this.#pause.paused,
    });
  }

  /** Numbers the dials of this device, across restarts and clocks that are set. Zero, which does not count, if it cannot. */
  async #nextDial(): Promise<bigint> {
    const { local } = this.#parts.storage;
    const last = (await local.get([dialKey]))[dialKey];
    const next = Math.max(typeof last === "number" ? last + 1 : 1, this.#parts.clock.wall());
    try {
      await local.set({ [dialKey]: next });
    } catch {
      return 0n;
    }
    return BigInt(Math.trunc(next));
  }

  /** Whether there are no private windows to keep from everybody: the browser shows none, or a person has allowed it. */
  #openly(): Promise<boolean> {
    this.#told ??= Promise.all([this.#parts.browser.seesPrivate(), readPrivate(this.#parts.storage.local)]).then(
      ([seen, told]) => !seen || told,
    );
    return this.#told;
  }

  #pairing(): Promise<Pairing | undefined> {
    this.#paired ??= readPairing(this.#parts.storage.local).catch((error: unknown) => {
      this.#paired = undefined; // it is read again
      throw error;
    });
    return this.#paired;
  }

  async #identityIfPaired(): Promise<Identity | undefined> {
    const [pairing, boot] = await Promise.all([this.#pairing(), this.#bootTag(), this.#replacements.ready]);
    return pairing && { device: pairing.deviceId, boot };
  }

  async #identity(): Promise<Identity> {
    const identity = await this.#identityIfPaired();
    if (identity === undefined) {
      throw new Error("this browser is not paired any more");
    }
    return identity;
  }

  /** Kept as long as the browser runs, so that ids stay what they are when the worker is started again. */
  #bootTag(): Promise<string> {
    this.#boot ??= this.#readBootTag().catch((error: unknown) => {
      this.#boot = undefined; // it is read again
      throw error;
    });
    return this.#boot;
  }

  async #readBootTag(): Promise<string> {
    const { session } = this.#parts.storage;
    const known = (await session.get([bootKey]))[bootKey];
    if (typeof known === "string") {
      return known;
    }
    const made = newBootTag((bytes) => crypto.getRandomValues(bytes));
    await session.set({ [bootKey]: made });
    return made;
  }
}

/** Whether a link of one pairing is as good as one of the other. The name is for people. */
function sameLink(a: Pairing, b: Pairing): boolean {
  return a.server === b.server && a.deviceId === b.deviceId && a.token === b.token;
}
