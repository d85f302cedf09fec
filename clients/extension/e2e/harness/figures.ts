/** Figures that a long run reports. */

/** Median, nearest-rank 95th percentile and the largest, rounded. */
export function spread(values: readonly number[]): {
  readonly count: number;
  readonly text: string;
  readonly max: number;
} {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
  const max = at(1);
  const [median, high, most] = [at(0.5), at(0.95), max].map((value) => value.toFixed(value < 10 ? 1 : 0));
  return { count: sorted.length, text: `median ${median}, p95 ${high}, max ${most} ms`, max };
}

/** Prints rows under one another. */
export function table(title: string, rows: Readonly<Record<string, string | number>>): void {
  const width = Math.max(...Object.keys(rows).map((key) => key.length));
  const lines = Object.entries(rows).map(([key, value]) => `  ${key.padEnd(width)}  ${value}`);
  console.log([title, ...lines].join("\n"));
}
