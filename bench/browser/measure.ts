/** Times of one kind of call, and what is said of them. */

/** Milliseconds, in the order in which they were taken. */
export type Times = number[];

/** The value that a part of all values do not exceed, by nearest rank: always one that was measured. */
export function rank(times: readonly number[], part: number): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}

export const median = (times: readonly number[]): number => rank(times, 0.5);
export const p95 = (times: readonly number[]): number => rank(times, 0.95);

/** Runs a call and adds the milliseconds that it took. */
export async function timed<T>(times: Times, run: () => Promise<T>): Promise<T> {
  const start = performance.now();
  const value = await run();
  times.push(performance.now() - start);
  return value;
}

export function must(holds: boolean, what: () => string): asserts holds {
  if (!holds) {
    throw new Error(what());
  }
}
