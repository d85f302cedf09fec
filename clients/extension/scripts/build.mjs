// Builds the extension into dist/chrome: four entry points, each complete in itself, so that the worker carries no page's
// code. Prints the sizes and fails if the worker is too big.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const maxWorkerBytes = 150_000;
const root = fileURLToPath(new URL("..", import.meta.url));
const out = process.env.THROWBAR_EXTENSION_OUT ?? `${root}dist/chrome`;

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const result = await build({
  absWorkingDir: root,
  entryPoints: ["worker.ts", "offscreen.ts", "options.tsx", "panel.tsx"].map((name) => `src/entrypoints/${name}`),
  outdir: out,
  entryNames: "[name]",
  bundle: true,
  format: "esm",
  target: "chrome120",
  minify: true,
  metafile: true,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
await cp(`${root}static`, out, { recursive: true });
await cp(`${root}manifest.json`, `${out}/manifest.json`);
if (process.env.THROWBAR_EXTENSION_META !== undefined) {
  await writeFile(process.env.THROWBAR_EXTENSION_META, JSON.stringify(result.metafile));
}

let failed = false;
for (const name of ["worker", "offscreen", "options", "panel"]) {
  const bytes = await readFile(`${out}/${name}.js`);
  const tooBig = name === "worker" && bytes.length > maxWorkerBytes;
  failed ||= tooBig;
  const limit = name === "worker" ? `, limit ${maxWorkerBytes}` : "";
  console.log(`${name}.js ${bytes.length} bytes, ${gzipSync(bytes).length} gzip${limit}${tooBig ? ": TOO BIG" : ""}`);
}
process.exitCode = failed ? 1 : 0;
