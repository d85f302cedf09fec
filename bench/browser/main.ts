/**
 * Throwbar beside two peers, each over a Chromium of its own: lists, shows, opens and closes among 20 tabs.
 *
 * main.mjs <throwbar's program> <chromium> [--rounds=3] [--each=60] [--only=throwbar]
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Peers } from "./mcp.js";
import { must, type Times, timed } from "./measure.js";
import { DevTools, Playwright } from "./peers.js";
import type { Subject, Tab } from "./subject.js";
import { bare, type Figures, operations, table } from "./table.js";
import { Throwbar } from "./throwbar.js";

const tabs = 20;
const warmUps = 5;
const stride = 7;

/** A page that is as small as a page can be. */
async function pages(): Promise<{ readonly next: () => string; stop(): void }> {
  const server = createServer((request, response) => {
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end(`<!doctype html><title>Page ${request.url}</title><p>page`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  must(typeof address === "object" && address !== null, () => "no port");
  let number = 0;
  return {
    next: () => `http://127.0.0.1:${address.port}/${number++}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const newTimes = (): Figures =>
  Object.fromEntries(operations.map((operation) => [operation, [] as Times])) as unknown as Figures;

/** One round of one subject. Everything is read back after it was timed, and must be so. */
async function measure(subject: Subject, each: number, next: () => string): Promise<Figures> {
  const kinds = [() => "about:blank", () => "data:text/html,<title>data</title>data", next];
  for (let count = (await subject.truth()).length; count < tabs; count++) {
    await subject.prepare(kinds[count % kinds.length]?.() ?? next());
  }
  const warm = newTimes();
  await pass(subject, warmUps, next, warm);
  const times = newTimes();
  await pass(subject, each, next, times);
  return times;
}

async function pass(subject: Subject, each: number, next: () => string, times: Figures): Promise<void> {
  for (let i = 0; i < each; i++) {
    const answer = await timed(times.list, () => subject.list());
    const [told, truth] = [subject.read(answer), await subject.truth()];
    must(told.length === tabs, () => `${subject.name} lists ${told.length} tabs`);
    must(same(told, truth), () => `${subject.name} lists\n${JSON.stringify(told)} of\n${JSON.stringify(truth)}`);
  }
  for (let i = 0; i < each; i++) {
    const all = await subject.truth();
    const tab = all[(i * stride) % all.length];
    must(tab !== undefined, () => "no tab");
    await timed(times.activate, () => subject.activate(tab));
    const active = (await subject.truth()).find((other) => other.active);
    must(
      active?.id === tab.id,
      () => `${subject.name} shows ${JSON.stringify(active)} instead of ${JSON.stringify(tab)}`,
    );
  }
  for (let i = 0; i < each; i++) {
    await openAndClose(subject, next(), times);
  }
}

async function openAndClose(subject: Subject, url: string, times: Figures): Promise<void> {
  const start = performance.now();
  await subject.open(url);
  const opened = performance.now() - start;
  await subject.loaded?.();
  times.loaded.push(performance.now() - start);
  if (subject.loaded !== undefined) {
    times.open.push(opened);
  }
  const made = (await subject.truth()).find((tab) => tab.url === url);
  must(made?.active === true, () => `${subject.name} did not open ${url} in the foreground`);
  await timed(times.close, () => subject.close(made));
  const left = await subject.truth();
  must(left.length === tabs && !left.some((tab) => tab.url === url), () => `${subject.name} did not close ${url}`);
}

function same(a: readonly Tab[], b: readonly Tab[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** What one subject did in one round, beside the load of the machine before and after. */
interface Turn {
  readonly round: number;
  readonly name: string;
  readonly load: readonly [number, number];
  readonly times: Figures;
  readonly floor?: Figures;
}

async function turn(subject: Subject, round: number, each: number, next: () => string): Promise<Turn> {
  const before = loadavg()[0] ?? 0;
  await subject.start();
  const times = await measure(subject, each, next);
  const floor = subject instanceof Throwbar ? { ...newTimes(), ...(await subject.floor(each, next)) } : undefined;
  const load = [before, loadavg()[0] ?? 0] as const;
  console.error(`round ${round}: ${subject.name}, load ${load.map((value) => value.toFixed(1)).join(" to ")}`);
  return { round, name: subject.name, load, times, ...(floor === undefined ? {} : { floor }) };
}

/** The times of all rounds together, by subject. */
function together(turns: readonly Turn[]): Map<string, Figures> {
  const all = new Map<string, Figures>();
  for (const { name, times, floor } of turns) {
    add(all, name, times);
    add(all, bare, floor ?? newTimes());
  }
  return all;
}

function add(all: Map<string, Figures>, name: string, times: Figures): void {
  const known = all.get(name) ?? newTimes();
  all.set(name, known);
  for (const operation of operations) {
    known[operation].push(...times[operation]);
  }
}

/** Makes the subjects that take part, anew for each round. */
function lineUp(folder: string, only: string, programs: { throwbar: string; chromium: string }): (() => Subject)[] {
  const { BENCH_ROOT: root = "", BENCH_EXTENSION: extension = "" } = process.env;
  const peers = new Peers(join(root, "bench/browser/peers"));
  const { chromium } = programs;
  return [
    () => new Throwbar({ ...programs, extension, folder }),
    ...(only === "throwbar"
      ? []
      : [() => new DevTools(peers, chromium, folder), () => new Playwright(peers, chromium, folder)]),
  ];
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      rounds: { type: "string", default: "3" },
      each: { type: "string", default: "60" },
      only: { type: "string", default: "" },
    },
    allowPositionals: true,
  });
  const [throwbar = "", chromium = ""] = positionals;
  const folder = await mkdtemp(join(tmpdir(), "throwbar-bench-browser-"));
  const site = await pages();
  const turns: Turn[] = [];
  let running: Subject | undefined;
  const end = async () => {
    await running?.stop();
    site.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    // A run that is broken off leaves no browser behind.
    process.once(signal, () => void end().finally(() => process.exit(1)));
  }
  try {
    const subjects = lineUp(folder, values.only, { throwbar, chromium });
    for (let round = 0; round < Number(values.rounds); round++) {
      for (let i = 0; i < subjects.length; i++) {
        const subject = subjects[(i + round) % subjects.length]?.();
        must(subject !== undefined, () => "no subject");
        running = subject;
        turns.push(await turn(subject, round + 1, Number(values.each), site.next));
        await subject.stop();
        running = undefined;
        await writeFile(join(process.env.BENCH_FOLDER ?? "", "figures.json"), JSON.stringify(turns, undefined, 1));
      }
    }
  } finally {
    await end();
  }
  const loads = turns.flatMap(({ load }) => load);
  console.log(table(together(turns), { ...values, cores: cpus().length, loads }));
}

await main();
