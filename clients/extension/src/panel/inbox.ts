/** What waits for a person, wherever it was asked, and how it ended. One panel of a profile follows the server and tells the others. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { callText } from "@throwbar/es/errors";
import { ApprovalSchema } from "@throwbar/es/pb/approvals";
import { type Approval, ApprovalState, type Approvals, type Verdict } from "./approvals.js";
import type { Together } from "./together.js";

export interface InboxState {
  /** Oldest first. */
  readonly pending: readonly Approval[];
  /** Those and what has ended while this panel looked, by id. */
  readonly known: ReadonlyMap<string, Approval>;
  /** Ids of what was decided in this panel. */
  readonly mine: ReadonlySet<string>;
}

type Told = { readonly kind: "approval"; readonly approval: Uint8Array };

const againMs = 2000;
/** While nobody follows, a call that asks may be denied at once: so it is never waited for long. */
const againMostMs = 5000;
/** The server shows every 15 seconds that the stream is alive. */
const silentMs = 40_000;
/** What has ended is kept so that its card can say how. */
const maxEnded = 200;

const empty: InboxState = { pending: [], known: new Map(), mine: new Set() };

export class Inbox {
  readonly #approvals: Approvals | undefined;
  readonly #together: Together;
  readonly #listeners = new Set<() => void>();
  #state = empty;

  /** Without approvals nothing ever waits. */
  constructor(approvals: Approvals | undefined, together: Together) {
    this.#approvals = approvals;
    this.#together = together;
    together.onMessage((message) => this.#told(message as Told));
  }

  get state(): InboxState {
    return this.#state;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #set(change: Partial<InboxState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of [...this.#listeners]) {
      listener();
    }
  }

  /** Follows until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const approvals = this.#approvals;
    if (approvals === undefined) {
      return;
    }
    void this.#reconcile(approvals);
    await this.#together.lead("approvals", signal, async () => {
      let wait = againMs;
      while (!signal.aborted) {
        try {
          await this.#follow(approvals, signal, () => {
            wait = againMs;
          });
        } catch {
          // It is opened again; whether the server can be reached is said elsewhere.
        }
        await pause(wait, signal);
        wait = Math.min(wait * 2, againMostMs);
      }
    });
  }

  async #follow(approvals: Approvals, signal: AbortSignal, opened: () => void): Promise<void> {
    let first = true;
    const silent = new AbortController();
    const listen = () => setTimeout(() => silent.abort(), silentMs);
    let timer = listen();
    try {
      for await (const { approval } of approvals.watch(AbortSignal.any([signal, silent.signal]))) {
        clearTimeout(timer);
        timer = listen();
        if (first) {
          first = false;
          opened();
          // From here on no change is missed, so that what is not pending now has ended.
          void this.#reconcile(approvals);
        }
        if (approval !== undefined) {
          this.#share(approval);
        }
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Asks for all that is pending, and for the end of what was. */
  async #reconcile(approvals: Approvals): Promise<void> {
    try {
      const before = this.#state.pending;
      const pending = await approvals.pending();
      for (const approval of pending) {
        this.#share(approval);
      }
      const ids = new Set(pending.map(({ approvalId }) => approvalId));
      for (const { approvalId } of before.filter((each) => !ids.has(each.approvalId))) {
        this.#share(await approvals.get(approvalId));
      }
    } catch {
      // The stream, or the next reconciliation, says it.
    }
  }

  #told(message: Told): void {
    if (message.kind === "approval") {
      this.#take(fromBinary(ApprovalSchema, message.approval));
    }
  }

  #share(approval: Approval): void {
    if (this.#take(approval)) {
      this.#together.post({ kind: "approval", approval: toBinary(ApprovalSchema, approval) } satisfies Told);
    }
  }

  /** What has ended does not wait again, in whatever order the news comes. Says whether it was news. */
  #take(approval: Approval): boolean {
    const before = this.#state.known.get(approval.approvalId);
    if (before !== undefined && before.state !== ApprovalState.PENDING && approval.state === ApprovalState.PENDING) {
      return false;
    }
    if (before?.state === approval.state && before.hash === approval.hash) {
      return false;
    }
    const known = new Map(this.#state.known).set(approval.approvalId, approval);
    const ended = [...known.values()].filter(({ state }) => state !== ApprovalState.PENDING);
    for (const { approvalId } of ended.slice(0, Math.max(0, ended.length - maxEnded))) {
      known.delete(approvalId);
    }
    const pending = [...known.values()]
      .filter(({ state }) => state === ApprovalState.PENDING)
      .sort((a, b) => madeAt(a) - madeAt(b) || (a.approvalId < b.approvalId ? -1 : 1));
    this.#set({ known, pending });
    return true;
  }

  /** Makes sure that an approval is known. Undefined where it cannot be read here. */
  async load(approvalId: string): Promise<Approval | undefined> {
    const known = this.#state.known.get(approvalId);
    if (known !== undefined) {
      return known;
    }
    try {
      const approval = await this.#approvals?.get(approvalId);
      if (approval !== undefined) {
        this.#take(approval);
      }
      return approval;
    } catch {
      return undefined;
    }
  }

  /** Decides what was shown. Returns why it did not count; empty if it did. */
  async decide(approval: Approval, verdict: Verdict): Promise<string> {
    try {
      const decided = await this.#approvals?.decide(approval, verdict);
      if (decided?.problem === "") {
        this.#set({ mine: new Set(this.#state.mine).add(approval.approvalId) });
      }
      if (decided?.approval !== undefined) {
        this.#share(decided.approval);
      }
      return decided?.problem ?? "";
    } catch (error) {
      return callText(error);
    }
  }
}

const madeAt = ({ createdAt }: Approval): number => (createdAt === undefined ? 0 : timestampMs(createdAt));

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, signal.aborted ? 0 : ms);
    signal.addEventListener("abort", end);
  });
}
