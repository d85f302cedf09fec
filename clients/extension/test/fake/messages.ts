/** The messages between parts of an extension: JSON only, and gone with the part that should have taken them. */
import type { Channel, MessagePort } from "../../src/platform/port.js";

type Listener = (message: unknown) => Promise<unknown> | undefined;

const overWire = <T>(message: T): T => (message === undefined ? message : (JSON.parse(JSON.stringify(message)) as T));

class FakeChannel implements Channel {
  readonly name: string;
  other: FakeChannel | undefined;
  readonly #onMessage: ((message: unknown) => void)[] = [];
  readonly #onClose: (() => void)[] = [];
  #closed = false;

  constructor(name: string) {
    this.name = name;
  }

  post(message: unknown): void {
    const sent = overWire(message);
    const to = this.other;
    queueMicrotask(() => {
      if (!this.#closed) {
        to?.take(sent);
      }
    });
  }

  take(message: unknown): void {
    for (const listener of this.#onMessage) {
      listener(message);
    }
  }

  onMessage(listener: (message: unknown) => void): void {
    this.#onMessage.push(listener);
  }

  onClose(listener: () => void): void {
    this.#onClose.push(listener);
  }

  /** Tells the other side only. */
  close(): void {
    if (!this.#closed) {
      this.#closed = true;
      this.other?.lost();
    }
  }

  lost(): void {
    if (!this.#closed) {
      this.#closed = true;
      for (const listener of this.#onClose) {
        listener();
      }
    }
  }
}

/** All parts of one extension. */
export class FakeHub {
  readonly #parts = new Set<FakeMessages>();
  #lose = 0;

  /** A new part, for example another start of the worker. */
  part(): FakeMessages {
    const part = new FakeMessages(this);
    this.#parts.add(part);
    return part;
  }

  /** Stops a part: its channels close, and it hears nothing any more. */
  stop(part: FakeMessages): void {
    this.#parts.delete(part);
    part.end();
  }

  /** Makes the next channels lead nowhere, without a word, as those to a worker that is just being stopped may do. */
  loseChannels(count: number): void {
    this.#lose = count;
  }

  lost(): boolean {
    return this.#lose > 0 && this.#lose-- > 0;
  }

  others(than: FakeMessages): FakeMessages[] {
    return [...this.#parts].filter((part) => part !== than);
  }
}

export class FakeMessages implements MessagePort {
  readonly #hub: FakeHub;
  readonly #listeners: Listener[] = [];
  readonly #onConnect: ((channel: Channel) => void)[] = [];
  readonly #channels: FakeChannel[] = [];
  #ended = false;

  constructor(hub: FakeHub) {
    this.#hub = hub;
  }

  async send(message: unknown): Promise<unknown> {
    if (this.#ended) {
      return new Promise(() => {});
    }
    for (const part of this.#hub.others(this)) {
      for (const listener of part.#listeners) {
        const answer = listener(overWire(message));
        if (answer !== undefined) {
          const stopped = new Promise((resolve) => part.#onEnd.push(() => resolve(undefined)));
          return overWire((await Promise.race([answer, stopped])) ?? undefined);
        }
      }
    }
    return undefined;
  }

  /** What was told to the pages. */
  readonly told: unknown[] = [];

  tell(message: unknown): void {
    this.told.push(overWire(message));
    for (const part of this.#ended ? [] : this.#hub.others(this)) {
      for (const listener of part.#listeners) {
        void listener(overWire(message));
      }
    }
  }

  readonly #onEnd: (() => void)[] = [];

  onMessage(listener: Listener): void {
    this.#listeners.push(listener);
  }

  connect(name: string): Channel {
    const here = new FakeChannel(name);
    if (this.#hub.lost()) {
      return here;
    }
    const there = new FakeChannel(name);
    here.other = there;
    there.other = here;
    const taker = this.#hub.others(this).find((part) => part.#onConnect.length > 0);
    if (taker === undefined) {
      queueMicrotask(() => here.lost());
      return here;
    }
    taker.#channels.push(there);
    for (const listener of taker.#onConnect) {
      listener(there);
    }
    return here;
  }

  onConnect(listener: (channel: Channel) => void): void {
    this.#onConnect.push(listener);
  }

  end(): void {
    this.#ended = true;
    this.#listeners.length = 0;
    for (const ended of this.#onEnd) {
      ended();
    }
    for (const channel of this.#channels) {
      channel.close();
    }
  }
}
