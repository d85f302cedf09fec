import { expect, test } from "vitest";
import { pieces, short, visible } from "../src/panel/text.js";

test.each([
  ["plain text, Ünïcode, 漢字, עברית, 👍", undefined],
  ["emoji\ufe0f keep their selector", undefined],
  ["two\nlines\tand a tab", undefined],
  ["carriage\r\nreturn", "carriage\nreturn"],
  ["a\rb", "a\\u000db"],
  ["safe\u202egpj.exe", "safe\\u202egpj.exe"],
  ["isolates \u2066x\u2069", "isolates \\u2066x\\u2069"],
  ["zero\u200bwidth\u200d\ufeff", "zero\\u200bwidth\\u200d\\ufeff"],
  ["bell\u0007 escape\u001b[31m del\u007f c1\u009b", "bell\\u0007 escape\\u001b[31m del\\u007f c1\\u009b"],
  ["tag \u{e0041}", "tag \\udb40\\udc41"],
  ["line\u2028paragraph\u2029", "line\\u2028paragraph\\u2029"],
  ["fillers \u3164\u115f\u034f\ufe01", "fillers \\u3164\\u115f\\u034f\\ufe01"],
  ["half \ud800 pair", "half \\ud800 pair"],
  ["private \ue000", "private \\ue000"],
])("%j is shown as %j", (text, shown = text) => {
  expect(visible(text)).toBe(shown);
});

test("escapes are told from the text around them: one that is written out is none", () => {
  expect(pieces("\\u202e\u202e!")).toEqual([
    { text: "\\u202e", escape: false },
    { text: "\\u202e", escape: true },
    { text: "!", escape: false },
  ]);
  expect(pieces("")).toEqual([]);
});

test("a short text is one line, cut between characters", () => {
  expect(short("  a\n b\u2028c ", 10)).toBe("a b c");
  expect(short("👍👍👍", 2)).toBe("👍…");
});
