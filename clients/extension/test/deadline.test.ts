import { expect, test } from "vitest";
import { Deadline, inTime, OutOfTime } from "../src/commands/deadline.js";
import { FakeClock } from "./fake/clock.js";

function make(leftMs: number) {
  const clock = new FakeClock();
  return { clock, deadline: new Deadline(clock, leftMs, clock.wall()) };
}

test("it counts on the monotonic clock, whatever the wall clock says", () => {
  const { clock, deadline } = make(1000);
  clock.now += 999;
  clock.date -= 86_400_000;
  expect(deadline.passed).toBe(false);
  clock.now += 1;
  expect(deadline.passed).toBe(true);
});

test("sleep counts, though the monotonic clock may stand still meanwhile", () => {
  const { clock, deadline } = make(1000);
  clock.date += 60_000;
  expect(deadline.passed).toBe(true);
});

test("time that passed before the worker was started counts", () => {
  const clock = new FakeClock();
  const received = clock.wall();
  clock.pass(800);
  const deadline = new Deadline(clock, 1000, received);
  expect(deadline.left()).toBe(200);
});

test.each([
  [30_000, 28_000],
  [5000, 4500],
  [1000, 750],
  [100, 0],
])("with %i ms left the answer is due in %i", (left, due) => {
  expect(make(left).deadline.toAnswer()).toBe(due);
});

test("a wait ends when it is time, and a late failure disturbs nobody", async () => {
  const stop = new AbortController();
  const waiting = inTime(new Promise(() => {}), stop.signal);
  stop.abort();
  await expect(waiting).rejects.toBeInstanceOf(OutOfTime);
  await expect(inTime(Promise.reject(new Error("late")), stop.signal)).rejects.toBeInstanceOf(OutOfTime);
  await expect(inTime(Promise.resolve(1), new AbortController().signal)).resolves.toBe(1);
});
