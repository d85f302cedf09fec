import { expect, test } from "vitest";
import { type Block, inlines, Prose, parse } from "../src/panel/prose.js";

const shape = (blocks: readonly Block[]) => blocks.map(({ at: _, ...block }) => block);
const text = (value: string) => [{ kind: "text", text: value }];

test("paragraphs, headings, lists and code", () => {
  const blocks = parse(
    "# Title\nOne\ntwo\n\n- a\n  more\n- b\n3. c\n4) d\n\n```ts\nconst <b> = 1;\n\n- no list\n```\nlast\n~~~\nopen",
  );
  expect(shape(blocks)).toEqual([
    { kind: "heading", inlines: text("Title") },
    { kind: "paragraph", inlines: text("One\ntwo") },
    { kind: "list", start: undefined, items: [text("a\nmore"), text("b")] },
    { kind: "list", start: 3, items: [text("c"), text("d")] },
    { kind: "code", language: "ts", text: "const <b> = 1;\n\n- no list" },
    { kind: "paragraph", inlines: text("last") },
    { kind: "code", language: "", text: "open" },
  ]);
});

test.each([
  ["code `a*b*` and **strong** text", ["text:code ", "code:a*b*", "text: and ", "strong:strong", "text: text"]],
  ["``a ` b``", ["code:a ` b"]],
  ["open ` tick and 2 ** 3 ** 4", ["text:open ` tick and 2 ** 3 ** 4"]],
  ["see https://example.com/a_(b). Then", ["text:see ", "link:https://example.com/a_(b)", "text:. Then"]],
  ["(https://example.com)", ["text:(", "link:https://example.com/", "text:)"]],
  ["[bank](https://evil.example/x)", ["text:[bank](", "link:https://evil.example/x", "text:)"]],
  // The address is shown as it is opened: in ASCII, whatever it looks like.
  ["https://аpple.com/", ["link:https://xn--pple-43d.com/"]],
  ["https://bank.example@evil.example/", ["text:https://bank.example@evil.example/"]],
  ["javascript:alert(1) data:text/html,x file:///etc", ["text:javascript:alert(1) data:text/html,x file:///etc"]],
  ["![x](https://evil.example/pixel.png)", ["text:![x](", "link:https://evil.example/pixel.png", "text:)"]],
  ["<img src=x onerror=alert(1)>", ["text:<img src=x onerror=alert(1)>"]],
])("%j", (source, want) => {
  const found = inlines(source).map((each) => `${each.kind}:${each.kind === "link" ? each.url : each.text}`);
  expect(found).toEqual(want);
});

test("a text that grows is read from its last blocks on, and what is complete stays the same object", () => {
  const whole = "One.\n\n- a\n- b\n\n```\ncode\n```\n\nTwo `x` https://example.com/ end.\n1. first\n";
  const prose = new Prose();
  let before: readonly Block[] = [];
  for (let end = 1; end <= whole.length; end++) {
    const blocks = prose.read(whole.slice(0, end));
    expect(blocks).toEqual(parse(whole.slice(0, end)));
    for (const [at, block] of before.slice(0, -2).entries()) {
      expect(blocks[at]).toBe(block);
    }
    before = blocks;
  }
  expect(prose.read("Another text")).toEqual(parse("Another text"));
});

test("no text makes reading it take forever", () => {
  for (const piece of ["`", "**", "*a ", "- ", "```\n", "https://", "((((", "#", "1. ", "\\", "` `` ", "**a"]) {
    // What looks at each character again for each character would take minutes.
    const started = performance.now();
    parse(piece.repeat(20_000));
    expect(performance.now() - started, piece).toBeLessThan(10_000);
  }
});
