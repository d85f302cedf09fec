/** Programs that run beside the tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

const startMs = 20_000;
const stopMs = 15_000;

export interface Running {
  readonly child: ChildProcess;
  /** Everything it has written so far. */
  output(): string;
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
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    if (child.exitCode !== null || child.signalCode !== null) {
      return;
    }
    const gone = once(child, "exit");
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), stopMs);
    await gone;
    clearTimeout(timer);
  };
  return { child, output: () => written, stop };
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

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") {
    throw new Error("no port");
  }
  return address.port;
}
