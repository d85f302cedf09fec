/** What the panels of one browser profile share, so that three of them do not hold the six connections that there are to a server. */

export interface Together {
  /** Runs the work while no other panel does the work of this name; waits for its turn, until the signal. */
  lead(name: string, signal: AbortSignal, work: () => Promise<void>): Promise<void>;
  /** One of so many slots of this name, or undefined if all are taken. The caller frees it. */
  slot(name: string, most: number): Promise<(() => void) | undefined>;
  /** Tells the other panels; they hear it in order. */
  post(message: unknown): void;
  onMessage(listener: (message: unknown) => void): void;
}

/** By the browser's own locks and broadcast: both end with the page that holds them. */
export function panelsTogether(name: string): Together {
  const channel = new BroadcastChannel(name);
  const take = (lock: string, options: LockOptions): Promise<(() => void) | undefined> =>
    new Promise((resolve, reject) => {
      navigator.locks
        .request(lock, options, (held) => {
          if (held === null) {
            resolve(undefined);
            return undefined;
          }
          return new Promise<void>((free) => resolve(free));
        })
        .catch(reject);
    });
  return {
    lead: async (of, signal, work) => {
      let free: (() => void) | undefined;
      try {
        free = await take(`${name} ${of}`, { signal });
        if (!signal.aborted) {
          await work();
        }
      } catch (error) {
        if (!signal.aborted) {
          throw error;
        }
      } finally {
        free?.();
      }
    },
    slot: async (of, most) => {
      for (let at = 0; at < most; at++) {
        const free = await take(`${name} ${of} ${at}`, { ifAvailable: true });
        if (free !== undefined) {
          return free;
        }
      }
      return undefined;
    },
    post: (message) => channel.postMessage(message),
    onMessage: (listener) => channel.addEventListener("message", ({ data }) => listener(data)),
  };
}

/** For a panel that is alone. */
export const alone: Together = {
  lead: (_name, _signal, work) => work(),
  slot: async () => () => {},
  post: () => {},
  onMessage: () => {},
};
