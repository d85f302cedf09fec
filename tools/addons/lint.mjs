// Runs Mozilla's linter for add-ons over a folder: lint.mjs <folder>. What is said fails, be it a warning or a notice, unless
// it is expected here with the reason; what is expected and not said fails as well, so that the list only shrinks.
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";

/** @type {readonly { readonly code: string; readonly file: string; readonly times: number; readonly why: string }[]} */
const expected = [
  {
    code: "KEY_FIREFOX_ANDROID_UNSUPPORTED_BY_MIN_VERSION",
    file: "manifest.json",
    times: 1,
    why: "what is said about data is for Firefox on a desktop; the extension is not offered for Android",
  },
  {
    code: "UNSUPPORTED_API",
    file: "eventpage.js",
    times: 1,
    why: "windows.onBoundsChanged is listened to where there is such an event",
  },
  {
    code: "UNSAFE_VAR_ASSIGNMENT",
    file: "options.js",
    times: 1,
    why: "Preact's property for raw HTML; the manifest test fails if the sources use it",
  },
  { code: "UNSAFE_VAR_ASSIGNMENT", file: "panel.js", times: 1, why: "the same" },
];

/** @typedef {{ readonly code: string, readonly file?: string, readonly message: string, readonly description: string }} Finding */

const require = createRequire(import.meta.url);
const linter = require.resolve("addons-linter/package.json").replace(/package\.json$/, "bin/addons-linter");
const [folder = ""] = process.argv.slice(2);
const done = spawnSync(process.execPath, [linter, "--output", "json", folder], { encoding: "utf8" });
/** @type {{ readonly errors: Finding[], readonly warnings: Finding[], readonly notices: Finding[] }} */
const { errors, warnings, notices } = JSON.parse(done.stdout || `{"errors":[{"message":"no report"}]}`);

/** @type {string[]} */
const problems = errors.map(({ file, message, description }) => `${file}: ${message}: ${description}`);
const said = [...(warnings ?? []), ...(notices ?? [])];
for (const { code, file, times, why } of expected) {
  const found = said.filter((each) => each.code === code && each.file === file).length;
  if (found !== times) {
    problems.push(`${file}: ${code} was expected ${times} times (${why}) and came ${found} times`);
  }
}
for (const { code, file, message } of said) {
  if (!expected.some((each) => each.code === code && each.file === file)) {
    problems.push(`${file}: ${code}: ${message}`);
  }
}
if (problems.length > 0) {
  process.stderr.write(`${problems.join("\n")}\n${done.stderr}`);
  process.exitCode = 1;
} else {
  process.stdout.write(`addons-linter: ${said.length} findings, all expected\n`);
}
