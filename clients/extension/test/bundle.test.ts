/** What each entry point carries: what runs in the background has no page's code in it. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { targets } from "../scripts/manifest.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const pages = /^(src\/(panel|pairing)\/|.*\/preact\/)/;

const entries = [...new Set(targets.flatMap((target) => target.entries))];

async function inputs(entry: string): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [`src/entrypoints/${entry}`],
    outdir: "nowhere",
    bundle: true,
    format: "esm",
    write: false,
    metafile: true,
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "silent",
  });
  return Object.keys(metafile.inputs);
}

test.each(entries.filter((name) => name.endsWith(".ts")))("%s has nothing of the pages", async (entry) => {
  expect((await inputs(entry)).filter((file) => pages.test(file))).toEqual([]);
});

test.each(entries.filter((name) => name.endsWith(".tsx")))("%s has", async (entry) => {
  const found = await inputs(entry);
  expect(found.filter((file) => pages.test(file))).not.toEqual([]);
  // Nothing that runs commands is in a page either.
  expect(found.filter((file) => /^src\/(commands|link|state|journal)\//.test(file))).toEqual([]);
});
