/** The table that the documents have. */
import { median, p95, type Times } from "./measure.js";

export const operations = ["list", "activate", "open", "loaded", "close"] as const;
export type Operation = (typeof operations)[number];
export type Figures = Record<Operation, Times>;

/** The floor's name among the subjects. */
export const bare = "bare `chrome.tabs`";

export interface About {
  readonly rounds: string;
  readonly each: string;
  readonly cores: number;
  /** Load of the machine at the start and at the end of each subject's turn. */
  readonly loads: readonly number[];
}

const names: Record<Operation, string> = {
  list: "list 20 tabs",
  activate: "show a tab",
  open: "open a tab, until the answer",
  loaded: "open a tab, until its page has loaded",
  close: "close a tab",
};

const number = (value: number) => (value < 10 ? value.toFixed(1) : value.toFixed(0));

function cell(times: Times): string {
  return times.length === 0 ? "–" : `${number(median(times))} / ${number(p95(times))}`;
}

/** Median and 95th percentile in milliseconds, by nearest rank, of all rounds together. */
export function table(results: ReadonlyMap<string, Figures>, about: About): string {
  const rank = (name: string) => (name === bare ? 0 : name === "Throwbar" ? 1 : 2);
  const subjects = [...results.keys()].sort((a, b) => rank(a) - rank(b));
  const times = (name: string, operation: Operation) => results.get(name)?.[operation] ?? [];
  const rows = operations.map((operation) => {
    const own = median(times("Throwbar", operation));
    const peers = subjects.slice(2).map((name) => median(times(name, operation)));
    return [
      names[operation],
      ...subjects.map((name) => cell(times(name, operation))),
      ratio(own, median(times(bare, operation))),
      ratio(own, Math.min(...peers.filter((value) => !Number.isNaN(value)))),
    ];
  });
  const head = ["ms: median / p95", ...subjects, "Throwbar to the floor", "to the faster peer"];
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const [least, most] = [Math.min(...about.loads), Math.max(...about.loads)].map((load) => load.toFixed(1));
  return [
    line(head),
    line(head.map(() => "---")),
    ...rows.map(line),
    "",
    `${about.rounds} rounds in turn, ${about.each} of each in a round; ${about.cores} cores, load ${least} to ${most}.`,
  ].join("\n");
}

function ratio(own: number, other: number): string {
  return Number.isFinite(own / other) && Number.isFinite(other) ? `${(own / other).toFixed(2)} ×` : "–";
}
