import { create } from "@bufbuild/protobuf";
import { type Approval, ApprovalSchema, ApprovalState } from "@throwbar/es/pb/approvals";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Approvals, Watched } from "../src/panel/approvals.js";
import { Inbox } from "../src/panel/inbox.js";
import { FakeTogether } from "./fake/together.js";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const approval = (approvalId: string, state = ApprovalState.PENDING) =>
  create(ApprovalSchema, { approvalId, state, hash: "h" });

/** A server whose streams a test ends. */
class FakeApprovals implements Approvals {
  readonly all = new Map<string, Approval>();
  readonly streams: {
    readonly say: (frame: Watched) => void;
    readonly fail: () => void;
    readonly signal: AbortSignal;
  }[] = [];

  put(id: string, state = ApprovalState.PENDING): void {
    this.all.set(id, approval(id, state));
  }

  async get(id: string): Promise<Approval> {
    return this.all.get(id) as Approval;
  }

  async pending(): Promise<Approval[]> {
    return [...this.all.values()].filter(({ state }) => state === ApprovalState.PENDING);
  }

  async decide(): Promise<never> {
    throw new Error("nobody decides here");
  }

  async *watch(signal: AbortSignal): AsyncGenerator<Watched> {
    const frames: (Watched | "fail")[] = [{}];
    let wake = () => {};
    const put = (frame: Watched | "fail") => {
      frames.push(frame);
      wake();
    };
    this.streams.push({ say: put, fail: () => put("fail"), signal });
    signal.addEventListener("abort", () => put("fail"));
    for (;;) {
      const frame = frames.shift();
      if (frame === "fail") {
        throw new Error("the stream broke");
      }
      if (frame !== undefined) {
        yield frame;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  }
}

function start(approvals = new FakeApprovals()) {
  const inbox = new Inbox(approvals, new FakeTogether());
  const stop = new AbortController();
  const ids = () => inbox.state.pending.map(({ approvalId }) => approvalId);
  void inbox.run(stop.signal);
  return { approvals, inbox, stop, ids };
}

const soon = () => vi.advanceTimersByTimeAsync(1);

test("what ended while there was no stream has ended here, too", async () => {
  const { approvals, inbox, ids, stop } = start();
  approvals.put("a");
  approvals.put("b");
  await soon();
  expect(ids()).toEqual(["a", "b"]);
  approvals.streams[0]?.fail();
  approvals.put("a", ApprovalState.DENIED);
  await soon();
  expect(ids()).toEqual(["a", "b"]);
  await vi.advanceTimersByTimeAsync(2000);
  expect(ids()).toEqual(["b"]);
  expect(inbox.state.known.get("a")?.state).toBe(ApprovalState.DENIED);
  stop.abort();
  await soon();
});

test("old news does not make it wait again", async () => {
  const { approvals, ids, stop } = start();
  await soon();
  const [stream] = approvals.streams;
  stream?.say({ approval: approval("a", ApprovalState.EXPIRED) });
  stream?.say({ approval: approval("a") });
  await soon();
  expect(ids()).toEqual([]);
  stop.abort();
});

test("a stream that is silent for longer than its signs of life is given up and opened again", async () => {
  const { approvals, stop } = start();
  await soon();
  for (let at = 0; at < 5; at++) {
    await vi.advanceTimersByTimeAsync(15_000);
    approvals.streams[0]?.say({});
  }
  await soon();
  expect(approvals.streams).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(43_000);
  expect(approvals.streams).toHaveLength(2);
  stop.abort();
  await soon();
  expect(approvals.streams.every(({ signal }) => signal.aborted)).toBe(true);
});

test("a server that is gone is asked again every few seconds, and no more often", async () => {
  const approvals = new FakeApprovals();
  const failing = vi.spyOn(approvals, "watch").mockImplementation(() => {
    throw new Error("gone");
  });
  const { stop } = start(approvals);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(failing.mock.calls.length).toBeGreaterThan(10);
  expect(failing.mock.calls.length).toBeLessThan(16);
  stop.abort();
});
