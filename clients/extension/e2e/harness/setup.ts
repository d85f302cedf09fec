/** Builds what the tests run: the extension and the server. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** Folder of the built extension. */
    extension: string;
    /** The server's program. */
    server: string;
    /** A scripted model server's program. */
    model: string;
  }
}

const repository = fileURLToPath(new URL("../../../..", import.meta.url));
const extensionRoot = join(repository, "clients", "extension");

function run(command: string, args: readonly string[], options: { cwd: string; env?: Record<string, string> }): void {
  const done = spawnSync(command, args, { ...options, env: { ...process.env, ...options.env }, encoding: "utf8" });
  if (done.status !== 0) {
    throw new Error(`${command} ${args.join(" ")} failed:\n${done.stdout ?? ""}${done.stderr ?? String(done.error)}`);
  }
}

export default function setup(project: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), "throwbar-e2e-"));
  const extension = join(folder, "extension");
  run(process.execPath, ["scripts/build.mjs"], { cwd: extensionRoot, env: { THROWBAR_EXTENSION_OUT: extension } });
  const goBuild = (name: string, source: string) => {
    const out = join(folder, name);
    run("go", ["build", "-tags", "sqlite_fts5", "-o", out, source], { cwd: repository });
    return out;
  };
  project.provide("extension", extension);
  project.provide("server", process.env.THROWBAR_BIN ?? goBuild("throwbar", "./cmd/throwbar"));
  project.provide("model", goBuild("scriptedmodel", "./clients/extension/e2e/scriptedmodel"));
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
