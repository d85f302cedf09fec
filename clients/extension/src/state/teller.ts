/** Tells the server what the browser has: a snapshot for each link, then deltas. */
import type { Delta } from "@throwbar/es/pb/device";
import type { Identity } from "./identity.js";
import { Mirror, type StateFrame } from "./mirror.js";
import type { StatePush } from "./push.js";

/** A link that stands. Urgent frames wait for no others. */
export type TellLink = (frames: StateFrame[], urgent: boolean) => void;

/** The wait before the worker is asked again. */
const askAgainMs = 1000;

interface Standing {
  readonly tell: TellLink;
  readonly identity: Identity;
  /** Whether it has had its snapshot, on which deltas count. */
  inStep: boolean;
}

export class Teller {
  #mirror = new Mirror();
  /** Asks the worker for everything. */
  readonly #ask: () => Promise<unknown>;
  #link: Standing | undefined;

  constructor(ask: () => Promise<unknown>) {
    this.#ask = ask;
  }

  /** A link stands, as this device of this start of the browser. */
  begin(identity: Identity, tell: TellLink): void {
    this.#link = { identity, tell, inStep: false };
    this.snapshot();
  }

  end(): void {
    this.#link = undefined;
  }

  /** Forgets what was read: the next link asks for everything again. */
  forget(): void {
    this.#mirror = new Mirror();
  }

  /** Takes over what the worker has read. False if the worker has to hand on everything first. */
  take(push: StatePush): boolean {
    const deltas = this.#mirror.take(push);
    if (deltas === undefined) {
      return false;
    }
    const link = this.#link;
    if (link !== undefined && !this.#mirror.has(link.identity)) {
      link.inStep = false; // of another pairing: its link is about to begin
    } else if (link?.inStep === false) {
      this.#tell(link);
    } else if (deltas.length > 0) {
      link?.tell(deltas.map(deltaFrame), false);
    }
    return true;
  }

  /** Tells everything, once it is known. */
  snapshot(): void {
    const link = this.#link;
    if (link === undefined) {
      return;
    }
    if (this.#mirror.has(link.identity)) {
      this.#tell(link);
      return;
    }
    const again = () => {
      if (this.#link === link && !link.inStep) {
        this.snapshot();
      }
    };
    // The answer comes as a push.
    void this.#ask()
      .catch(() => undefined)
      .then(() => setTimeout(again, askAgainMs));
  }

  #tell(link: Standing): void {
    link.inStep = true;
    link.tell(this.#mirror.frames(), true);
  }
}

const deltaFrame = (value: Delta): StateFrame => ({ case: "delta", value });
