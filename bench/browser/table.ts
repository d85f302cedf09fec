/** The table that the documents have. */
import { median, p95, type Times } from "./measure.js";

export const operations = ["list", "activate", "open", "loaded", "close"] as const;
export type Operation = (typeof operations)[number];
export type Figures = Record<Operation, Times>;

export interface About {
  readonly rounds: string;
  readonly each: string;
  readonly cores: number;
  readonly load: { readonly before: readonly number[]; readonly after: readonly number[] };
}

const names: Record<Operation, string> = {
  list: "list 20 tabs",
  activate: "show a tab",
  open: "open a tab, until it is there",
  loaded: "open a tab, until its page has loaded",
  close: "close a tab",
};

const number = (value: number) => (value < 10 ? value.toFixed(1) : value.toFixed(0));

function cell(times: Times): string {
  return times.length === 0 ? "–" : `${number(median(times))} / ${number(p95(times))}`;
}

/** Median and 95th percentile in milliseconds, by nearest rank, of all rounds together. */
export function table(results: ReadonlyMap<string, Figures>, floor: Figures, about: About): string {
  const subjects = [...results.keys()].sort((a, b) => Number(b === "Throwbar") - Number(a === "Throwbar"));
  const head = ["ms: median / p95", "bare `chrome.tabs`", ...subjects, "Throwbar to the floor", "to the faster peer"];
  const rows = operations.map((operation) => {
    const own = results.get("Throwbar")?.[operation] ?? [];
    const peers = subjects
      .filter((name) => name !== "Throwbar")
      .map((name) => median(results.get(name)?.[operation] ?? []))
      .filter((value) => !Number.isNaN(value));
    return [
      names[operation],
      cell(floor[operation]),
      ...subjects.map((name) => cell(results.get(name)?.[operation] ?? [])),
      ratio(median(own), median(floor[operation])),
      ratio(median(own), Math.min(...peers)),
    ];
  });
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const load = (values: readonly number[]) => values.map((value) => value.toFixed(1)).join(" ");
  return [
    line(head),
    line(head.map(() => "---")),
    ...rows.map(line),
    "",
    `${about.rounds} rounds in turn, ${about.each} of each in a round; ${about.cores} cores, load ${load(about.load.before)} before and ${load(about.load.after)} after.`,
  ].join("\n");
}

function ratio(own: number, other: number): string {
  return Number.isFinite(own / other) && Number.isFinite(other) ? `${(own / other).toFixed(2)} ×` : "–";
}
