/** Notices that the machine has slept: clocks go on, or jump, where no timer ran. */
import type { Clock } from "../platform/port.js";

const tickMs = 5000;
/** A busy machine is late, too. */
const lateMs = 5000;

/** Calls back after each sleep with its length in milliseconds; returns what ends that. */
export function watchSleep(clock: Clock, woke: (ms: number) => void): () => void {
  const now = () => [clock.monotonic(), clock.wall()] as const;
  let [even, wall] = now();
  const timer = setInterval(() => {
    const before = [even, wall] as const;
    [even, wall] = now();
    // Which of the two stands still in a sleep depends on the system.
    const passed = Math.max(even - before[0], wall - before[1]);
    if (passed > tickMs + lateMs) {
      woke(passed);
    }
  }, tickMs);
  return () => clearInterval(timer);
}
