import type { Clock } from "../../src/platform/port.js";

/** Two clocks that a test moves, together or apart. */
export class FakeClock implements Clock {
  now = 0;
  date = 1_800_000_000_000;

  monotonic(): number {
    return this.now;
  }

  wall(): number {
    return this.date;
  }

  pass(ms: number): void {
    this.now += ms;
    this.date += ms;
  }
}
