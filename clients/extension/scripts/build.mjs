// @ts-check
// Builds the extension into dist/chrome and dist/firefox, or the targets that are named. Each entry point is complete in
// itself, so that what runs in the background carries no page's code. Prints the sizes and fails if one is over its limit.
//
// THROWBAR_EXTENSION_OUT is another folder for the one target, chrome if none is named.
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { withoutOptions } from "./descriptors.mjs";
import { manifestOf, targetOf, targets } from "./manifest.mjs";
import { smallProtobuf } from "./protobuf.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const elsewhere = process.env.THROWBAR_EXTENSION_OUT;

/**
 * The sources name the folder platform/chrome. For another target a module of its own folder stands in for the one of the
 * same name, where there is one; that module itself may use the one that it stands in for.
 * @param {import("./manifest.mjs").Target} target
 * @returns {import("esbuild").Plugin}
 */
function platform(target) {
  const own = `${root}src/platform/${target.name}/`;
  return {
    name: "platform",
    setup({ onResolve }) {
      onResolve({ filter: /\.js$/ }, async ({ path, resolveDir, importer }) => {
        const file = fileURLToPath(new URL(path, `file://${resolveDir}/`)).replace(/\.js$/, ".ts");
        const stand = `${own}${basename(file)}`;
        const inChrome = file === `${root}src/platform/chrome/${basename(file)}`;
        return path.startsWith(".") && inChrome && !importer.startsWith(own) && existsSync(stand)
          ? { path: stand }
          : undefined;
      });
    },
  };
}

/**
 * @param {import("./manifest.mjs").Target} target
 * @param {string} out
 * @param {readonly string[]} entries
 * @param {readonly import("esbuild").Plugin[]} plugins
 * @returns {Promise<import("esbuild").Metafile>}
 */
async function bundle(target, out, entries, plugins) {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: entries.map((name) => `src/entrypoints/${name}`),
    outdir: out,
    entryNames: "[name]",
    bundle: true,
    format: "esm",
    target: target.esbuild,
    minify: true,
    metafile: true,
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
    plugins: [platform(target), smallProtobuf, ...plugins],
  });
  return metafile;
}

/**
 * @param {import("./manifest.mjs").Target} target
 * @param {string} out
 * @returns {Promise<boolean>}
 */
async function buildTarget(target, out) {
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  const pages = target.entries.filter((name) => name.endsWith(".tsx"));
  const metas = [await bundle(target, out, pages, [])];
  for (const name of target.entries.filter((each) => !pages.includes(each))) {
    metas.push(await bundle(target, out, [name], [withoutOptions(name !== "worker.ts")]));
  }
  await cp(`${root}static`, out, { recursive: true, filter: (file) => !target.without.includes(basename(file)) });
  await writeFile(`${out}/manifest.json`, `${JSON.stringify(manifestOf(target), undefined, 2)}\n`);
  if (process.env.THROWBAR_EXTENSION_META !== undefined) {
    const outputs = Object.assign({}, ...metas.map((meta) => meta.outputs));
    const inputs = Object.assign({}, ...metas.map((meta) => meta.inputs));
    await writeFile(process.env.THROWBAR_EXTENSION_META, JSON.stringify({ inputs, outputs }));
  }
  let fits = true;
  for (const entry of target.entries) {
    const name = entry.replace(/\.tsx?$/, "");
    const bytes = await readFile(`${out}/${name}.js`);
    const most = target.limits[name];
    const tooBig = most !== undefined && bytes.length > most;
    fits &&= !tooBig;
    const limit = most === undefined ? "" : `, limit ${most}`;
    console.log(
      `${target.name} ${name}.js ${bytes.length} bytes, ${gzipSync(bytes).length} gzip${limit}${tooBig ? ": TOO BIG" : ""}`,
    );
  }
  return fits;
}

const named = process.argv.slice(2).map(targetOf);
const wanted = named.length > 0 ? named : elsewhere === undefined ? targets : [targetOf("chrome")];
if (elsewhere !== undefined && wanted.length > 1) {
  throw new Error("one folder holds one target");
}
for (const target of wanted) {
  if (!(await buildTarget(target, elsewhere ?? `${root}dist/${target.name}`))) {
    process.exitCode = 1;
  }
}
