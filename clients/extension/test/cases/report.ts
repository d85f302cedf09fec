/** docs/browser-cases.md, written from the table. */
import type { BrowserCase, CommandCase } from "./case.js";

type Any = BrowserCase | CommandCase;

const head = `# What browsers do, and what Throwbar makes of it

Written from the case table in clients/extension/test/cases by \`UPDATE_CASES=1 npx vitest run --project unit test/report.test.ts\`; edit that, not this.

Each case has one expected value. It is run on the fake browser of the unit tests and, unless the last column says why not, in a
headless Chromium with the built extension, where each call is made by the extension's own adapter (browser) or worker (commands).
A difference between the two fails \`make test\`. A source that is a number is the case of that number in the research of public
bug reports from which the table was begun; "tried here" is what was found while it was made.
`;

const cell = (text: string) => text.replaceAll("|", "\\|");

function table(cases: readonly Any[], from: number): string {
  const rows = cases.map(({ title, source, chromium, ours, fakeOnly }, at) => {
    const where = fakeOnly === undefined ? "fake and Chromium" : `fake only: ${fakeOnly}`;
    return `| ${[String(from + at), title, source, chromium, ours, where].map(cell).join(" | ")} |`;
  });
  return ["| | case | source | Chromium | Throwbar | runs on |", "| --- | --- | --- | --- | --- | --- |", ...rows].join(
    "\n",
  );
}

export function report(browser: readonly BrowserCase[], commands: readonly CommandCase[]): string {
  const all = [...browser, ...commands];
  const both = all.filter(({ fakeOnly }) => fakeOnly === undefined).length;
  const count = `${all.length} cases: ${browser.length} of the browser, ${commands.length} of commands; ${both} run in both.`;
  return [
    head,
    count,
    "\n## The browser\n",
    table(browser, 1),
    "\n## Commands\n",
    table(commands, browser.length + 1),
    "",
  ].join("\n");
}
