/** Programs that run beside the tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

const startMs = 60_000;
const stopMs = 15_000;

export interface Running {
  readonly child: ChildProcess;
  /** Everything it has written so far. */
  output(): string;
  runs(): boolean;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts a program and waits until it has written a line that matches. */
export async function start(
  program: string,
  args: readonly string[],
  env: Record<string, string>,
  ready: RegExp,
): Promise<Running> {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  endWithTests(child);
  let written = "";
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${program} ${why}\n${written}`));
    const timer = setTimeout(() => fail("was not ready in time"), startMs);
    const take = (chunk: Buffer) => {
      written += chunk.toString();
      if (ready.test(written)) {
        clearTimeout(timer);
        resolve();
      }
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.once("error", (error) => fail(String(error)));
    child.once("exit", (code) => fail(`ended with ${code}`));
  });
  const runs = () => child.exitCode === null && child.signalCode === null;
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    if (!runs()) {
      return;
    }
    const gone = once(child, "exit");
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), stopMs);
    await gone;
    clearTimeout(timer);
  };
  return { child, output: () => written, runs, stop };
}

/** Starts a program and does not listen to it. It is the first of a group of processes of its own. */
export function startProgram(program: string, args: readonly string[]): ChildProcess {
  const child = spawn(program, args, { stdio: "ignore", detached: true });
  endWithTests(child);
  return child;
}

/** Sends a signal to a program and all that it has started. */
export function signalAll(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid !== undefined) {
    process.kill(-child.pid, signal);
  }
}

/** A run that is broken off leaves nothing behind. */
function endWithTests(child: ChildProcess): void {
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  child.once("exit", () => process.off("exit", end));
}

/** Below the ports that systems hand out by themselves, to connections too; none of them is one that browsers refuse. */
const leastPort = 20_000;
const mostPort = 32_000;

/**
 * A port that is free, and that no system hands out while nobody listens on it: a server that is started again has to get its own
 * back.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; ; tries++) {
    const port = leastPort + Math.floor(Math.random() * (mostPort - leastPort));
    const server = createServer();
    try {
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    } catch (error) {
      if (tries < 50) {
        continue;
      }
      throw error;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
