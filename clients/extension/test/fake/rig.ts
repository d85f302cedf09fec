/** The worker, the document that holds the link, and a server, with a browser that changes by itself; each may stop at any time. */
import type { DeviceFrame } from "@throwbar/es/pb/device";
import { isMessage } from "../../src/bridge/messages.js";
import { pairingKey } from "../../src/bridge/settings.js";
import { WorkerSide } from "../../src/bridge/worker.js";
import { Backoff } from "../../src/link/backoff.js";
import { Link } from "../../src/link/link.js";
import { FakeClock } from "./clock.js";
import { pairing } from "./extension.js";
import { FakeHub, type FakeMessages } from "./messages.js";
import type { Restless } from "./restless.js";
import { type FakeLink, FakeServer } from "./server.js";
import { StateServer } from "./stateserver.js";
import { FakeStorage } from "./storage.js";

export type StateFrame = Extract<DeviceFrame["kind"], { case: "snapshot" | "delta" }>;

export class Rig {
  readonly strip: Restless;
  readonly storage = new FakeStorage();
  readonly server = new FakeServer();
  readonly view = new StateServer();
  /** All frames of state that have come. */
  readonly frames: StateFrame[] = [];
  /** What becomes of a frame that is about to come: how often the server gets it. */
  fate: (frame: StateFrame) => number = () => 1;
  readonly #hub = new FakeHub();
  #worker: FakeMessages | undefined;
  #document: FakeMessages | undefined;
  #alive = { value: true };
  #attached: FakeLink | undefined;
  #taken = 0;

  constructor(strip: Restless) {
    this.strip = strip;
    this.storage.local.items.set(pairingKey, JSON.stringify(pairing));
  }

  get boot(): string {
    return JSON.parse(this.storage.session.items.get("boot") ?? '""') as string;
  }

  startWorker(): WorkerSide {
    this.stopWorker();
    const messages = this.#hub.part();
    this.#worker = messages;
    return new WorkerSide({
      browser: this.strip,
      storage: this.storage,
      messages,
      clock: new FakeClock(),
      about: async () => ({ version: "1", agent: "Restless 1", platform: "linux" }),
      ensureLink: async () => {},
      showBadge: async () => {},
    });
  }

  /** What the browser tells of before there is a worker again is lost. */
  stopWorker(): void {
    this.strip.deafen();
    this.storage.local.listeners.clear();
    if (this.#worker !== undefined) {
      this.#hub.stop(this.#worker);
    }
  }

  startDocument(): void {
    if (this.#document !== undefined) {
      this.#hub.stop(this.#document);
    }
    this.#alive.value = false;
    const alive = { value: true };
    this.#alive = alive;
    const messages = this.#hub.part();
    this.#document = messages;
    const never = () => new Promise<never>(() => {});
    const { server } = this;
    const link = new Link({
      messages,
      clock: new FakeClock(),
      calls: () => ({
        watch: (hello, signal) => server.watch(hello, signal),
        report: (request) => (alive.value ? server.report(request) : never()),
        rotate: never,
      }),
      backoff: new Backoff(() => 0),
    });
    messages.onMessage((message) => (isMessage(message, "link") ? link.receive(message) : undefined));
    link.start();
  }

  /** Welcomes a new link, and takes in what has come. */
  pump(): void {
    const link = this.server.links.at(-1);
    if (link === undefined) {
      return;
    }
    if (link !== this.#attached) {
      this.#attached = link;
      this.#taken = 0;
      this.view.attach();
      link.welcome();
    }
    for (; this.#taken < link.received.length; this.#taken++) {
      const kind = link.received[this.#taken]?.kind;
      if (kind?.case === "snapshot" || kind?.case === "delta") {
        for (let times = this.fate(kind); times > 0; times--) {
          this.#take(link, kind);
        }
      }
    }
  }

  #take(link: FakeLink, kind: StateFrame): void {
    this.frames.push(kind);
    const resync = kind.case === "snapshot" ? this.view.snapshot(kind.value) : this.view.delta(kind.value);
    if (resync !== undefined) {
      link.send({ case: "resync", value: { reason: "a gap" } });
    }
  }

  breakLink(): void {
    this.server.links.at(-1)?.fail();
  }
}
