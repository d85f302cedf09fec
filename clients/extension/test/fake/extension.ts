/** A whole extension without a browser: worker, link and everything between, with a worker that can be stopped. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ActionSchema } from "@throwbar/es/pb/command";
import type { Outcome } from "@throwbar/es/pb/device";
import { SavedTabSchema } from "@throwbar/es/pb/state";
import { isMessage, type Message, type Pairing } from "../../src/bridge/messages.js";
import { pairingKey } from "../../src/bridge/settings.js";
import { WorkerSide } from "../../src/bridge/worker.js";
import { Backoff } from "../../src/link/backoff.js";
import { Link } from "../../src/link/link.js";
import type { Badge } from "../../src/platform/port.js";
import { FakeBrowser } from "./browser.js";
import { FakeClock } from "./clock.js";
import { FakeHub, type FakeMessages } from "./messages.js";
import { FakeServer } from "./server.js";
import { FakeStorage } from "./storage.js";
import { until } from "./until.js";

export const pairing: Pairing = { server: "http://127.0.0.1:3913", deviceId: "dev1", token: "secret", name: "laptop" };

export class FakeExtension {
  readonly browser: FakeBrowser;
  readonly storage = new FakeStorage();
  readonly clock: FakeClock;
  readonly server = new FakeServer();
  /** The tokens of the links that were dialled. */
  readonly used: string[] = [];
  /** Called for each thing that the worker is asked. */
  onAsked: (kind: string) => void = () => {};
  /** What the icon showed, one after the other. */
  readonly badges: Badge[] = [];
  readonly hub = new FakeHub();
  link: Link;
  #linkMessages = this.hub.part();
  /** A page of the extension. */
  readonly #page = this.hub.part();
  worker: WorkerSide;
  #workerMessages: FakeMessages;

  constructor(
    browser = new FakeBrowser("https://a.test/", "https://b.test/"),
    paired = true,
    clock: FakeClock = new FakeClock(),
  ) {
    this.browser = browser;
    this.clock = clock;
    if (paired) {
      this.storage.local.items.set(pairingKey, JSON.stringify(pairing));
    }
    [this.worker, this.#workerMessages] = this.#startWorker();
    this.link = this.#startLink();
  }

  #startLink(): Link {
    const link = new Link({
      messages: this.#linkMessages,
      clock: this.clock,
      calls: ({ token }) => {
        this.used.push(token);
        return this.server;
      },
      backoff: new Backoff(() => 0),
    });
    this.#linkMessages.onMessage((message) => (isMessage(message, "link") ? link.receive(message) : undefined));
    return link;
  }

  /** The document that holds the link is closed, and another one is opened. */
  newLink(): void {
    this.hub.stop(this.#linkMessages);
    this.#linkMessages = this.hub.part();
    this.link = this.#startLink();
  }

  /** What a page says to another part. */
  say(message: Message): Promise<unknown> {
    return this.#page.send(message);
  }

  /** What pages were told by the link. */
  told(): unknown[] {
    return this.#linkMessages.told;
  }

  #startWorker(): [WorkerSide, FakeMessages] {
    const messages = this.hub.part();
    messages.onMessage((message) => {
      if (isMessage(message, "worker")) {
        this.onAsked(message.kind);
      }
      return undefined;
    });
    const worker = new WorkerSide({
      browser: this.browser,
      storage: this.storage,
      messages,
      clock: this.clock,
      about: async () => ({ version: "1", agent: "Fake 1", platform: "linux" }),
      ensureLink: async () => {},
      showBadge: async (badge) => {
        this.badges.push(badge);
      },
    });
    worker.readAgain();
    return [worker, messages];
  }

  /** Stops the worker, and starts another at the next message, as the browser does: at once here. */
  killWorker(): void {
    this.browser.deafen();
    const old = this.#workerMessages;
    [this.worker, this.#workerMessages] = this.#startWorker();
    this.hub.stop(old);
  }

  /** The browser ends and starts again: tabs have other ids, and what belongs to the session is gone. */
  restartBrowser(): void {
    this.storage.session.items.clear();
    this.killWorker();
  }

  /** Starts the link and lets the server welcome it. */
  async online(): Promise<void> {
    this.link.start();
    await until(() => this.server.link);
    this.server.link.welcome();
    await until(() => {
      if (this.server.link.of("snapshot").length === 0) {
        throw new Error("no snapshot yet");
      }
    });
  }

  command(
    commandId: string,
    kind: NonNullable<MessageInitShape<typeof ActionSchema>["kind"]>,
    more: { readonly leftMs?: number; readonly saved?: MessageInitShape<typeof SavedTabSchema>[] } = {},
  ): void {
    const { leftMs = 30_000, saved = [] } = more;
    const timeLeft = { seconds: BigInt(Math.floor(leftMs / 1000)), nanos: (leftMs % 1000) * 1e6 };
    this.server.link.send({
      case: "command",
      value: {
        commandId,
        action: { kind },
        timeLeft,
        attempt: 1,
        saved: saved.map((tab) => create(SavedTabSchema, tab)),
      },
    });
  }

  /** The outcomes of a command on the current link, once there is one. */
  outcome(commandId: string): Promise<Outcome> {
    return until(() => {
      const found = this.server.link.of("outcome").find((outcome) => outcome.commandId === commandId);
      if (found === undefined) {
        throw new Error(`no outcome of ${commandId}`);
      }
      return found;
    });
  }
}
