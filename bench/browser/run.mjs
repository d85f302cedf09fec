// Puts the driver together and runs it: run.mjs <folder for what is made> <throwbar's program> <chromium> [options of main.ts].
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const [folder = ".tmp/bench-browser", ...rest] = process.argv.slice(2);
const made = resolve(folder);
mkdirSync(made, { recursive: true });

const extension = `${made}/extension`;
const built = spawnSync(process.execPath, ["scripts/build.mjs", "chrome"], {
  cwd: `${root}clients/extension`,
  env: { ...process.env, THROWBAR_EXTENSION_OUT: extension },
  stdio: ["ignore", "ignore", "inherit"],
});
if (built.status !== 0) {
  process.exit(1);
}
await build({
  entryPoints: [`${root}bench/browser/main.ts`],
  outfile: `${made}/main.mjs`,
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  logLevel: "warning",
});
const env = { ...process.env, BENCH_ROOT: root, BENCH_FOLDER: made, BENCH_EXTENSION: extension };
const ran = spawnSync(process.execPath, [`${made}/main.mjs`, ...rest], { env, stdio: "inherit" });
process.exitCode = ran.status ?? 1;
