/** Worker and link in one context, as in Firefox's event page. The browser takes no message back to the context it came from. */
import type { Channel, MessagePort } from "../platform/port.js";

type Listener = (message: unknown) => Promise<unknown> | undefined;

/** One end of a channel inside a context. As with the browser's channels, what is posted arrives later, and nothing after a close. */
class End implements Channel {
  readonly name: string;
  other: End | undefined;
  readonly #messages: ((message: unknown) => void)[] = [];
  readonly #closes: (() => void)[] = [];
  #open = true;

  constructor(name: string) {
    this.name = name;
  }

  post(message: unknown): void {
    queueMicrotask(() => {
      if (this.#open) {
        this.other?.take(message);
      }
    });
  }

  take(message: unknown): void {
    for (const listener of this.#messages) {
      listener(message);
    }
  }

  onMessage(listener: (message: unknown) => void): void {
    this.#messages.push(listener);
  }

  onClose(listener: () => void): void {
    this.#closes.push(listener);
  }

  close(): void {
    if (this.#open) {
      this.#open = false;
      this.other?.lost();
    }
  }

  lost(): void {
    if (this.#open) {
      this.#open = false;
      for (const listener of this.#closes) {
        listener();
      }
    }
  }
}

/**
 * Hands a message to the parts in this context first, and to the rest of the extension if none of them takes it. Parts here
 * also hear what others send.
 */
export function together(outside: MessagePort): MessagePort {
  const listeners: Listener[] = [];
  const connects: ((channel: Channel) => void)[] = [];
  return {
    send: async (message) => {
      for (const listener of listeners) {
        const answer = listener(message);
        if (answer !== undefined) {
          return (await answer) ?? undefined;
        }
      }
      return outside.send(message);
    },
    tell: (message) => {
      for (const listener of listeners) {
        void listener(message);
      }
      outside.tell(message);
    },
    onMessage: (listener) => {
      listeners.push(listener);
      outside.onMessage(listener);
    },
    connect: (name) => {
      const near = new End(name);
      const far = new End(name);
      near.other = far;
      far.other = near;
      for (const listener of connects) {
        listener(far);
      }
      return near;
    },
    onConnect: (listener) => {
      connects.push(listener);
      outside.onConnect(listener);
    },
  };
}
