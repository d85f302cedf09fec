/**
 * What the model writes, as paragraphs, lists, headings and code: data, from which elements are made. Anything else stays the
 * text that it is. A text that grows is read again from its last blocks on only.
 */
import { checkUrl } from "@throwbar/es/url";

export type Inline =
  | { readonly kind: "text" | "strong" | "code"; readonly text: string }
  /** The address as it is opened; it is what is shown. */
  | { readonly kind: "link"; readonly url: string };

export type Block = (
  | { readonly kind: "paragraph" | "heading"; readonly inlines: readonly Inline[] }
  | { readonly kind: "list"; readonly start: number | undefined; readonly items: readonly (readonly Inline[])[] }
  | { readonly kind: "code"; readonly language: string; readonly text: string }
) & {
  /** Where it begins in the text. */
  readonly at: number;
};

const bullet = /^ {0,3}[-*+•] +(?=\S)/;
const ordered = /^ {0,3}(\d{1,9})[.)] +(?=\S)/;
const fence = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const headingMark = /^ {0,3}#{1,6} +(?=\S)/;

/** Reads a text that grows. Blocks that are complete stay the very same objects. */
export class Prose {
  #text = "";
  #blocks: readonly Block[] = [];

  read(text: string): readonly Block[] {
    if (text !== this.#text) {
      // What is added may make an item of the last list out of the line below it: that is two blocks.
      const from = this.#blocks.at(-2);
      const grown = from !== undefined && text.startsWith(this.#text);
      this.#blocks = grown ? [...this.#blocks.slice(0, -2), ...parse(text, from.at)] : parse(text, 0);
      this.#text = text;
    }
    return this.#blocks;
  }
}

interface Line {
  readonly text: string;
  readonly at: number;
}

function linesFrom(text: string, from: number): Line[] {
  const lines: Line[] = [];
  let at = from;
  for (const line of text.slice(from).split("\n")) {
    lines.push({ text: line.endsWith("\r") ? line.slice(0, -1) : line, at });
    at += line.length + 1;
  }
  return lines;
}

export function parse(text: string, from = 0): Block[] {
  const lines = linesFrom(text, from);
  const blocks: Block[] = [];
  let next = 0;
  while (next < lines.length) {
    const line = lines[next] as Line;
    if (line.text.trim() === "") {
      next++;
      continue;
    }
    const [block, used] = blockAt(lines, next);
    blocks.push(block);
    next += used;
  }
  return blocks;
}

function blockAt(lines: readonly Line[], first: number): [Block, number] {
  const { text, at } = lines[first] as Line;
  const fenced = fence.exec(text);
  if (fenced !== null) {
    return codeAt(lines, first, fenced[1] ?? "", (fenced[2] ?? "").trim());
  }
  if (headingMark.test(text)) {
    return [{ kind: "heading", at, inlines: inlines(text.replace(headingMark, "")) }, 1];
  }
  if (bullet.test(text) || ordered.test(text)) {
    return listAt(lines, first, bullet.test(text) ? bullet : ordered);
  }
  const end = lines.findIndex((line, index) => index > first && startsOther(line.text));
  const own = lines.slice(first, end < 0 ? undefined : end);
  return [{ kind: "paragraph", at, inlines: inlines(own.map((line) => line.text).join("\n")) }, own.length];
}

const startsOther = (text: string) =>
  text.trim() === "" || fence.test(text) || headingMark.test(text) || bullet.test(text) || ordered.test(text);

function codeAt(lines: readonly Line[], first: number, mark: string, language: string): [Block, number] {
  const { at } = lines[first] as Line;
  const close = new RegExp(`^ {0,3}[${mark.charAt(0)}]{${mark.length},}\\s*$`);
  const end = lines.findIndex((line, index) => index > first && close.test(line.text));
  const own = lines.slice(first + 1, end < 0 ? undefined : end);
  const block: Block = { kind: "code", at, language, text: own.map((line) => line.text).join("\n") };
  return [block, own.length + (end < 0 ? 1 : 2)];
}

function listAt(lines: readonly Line[], first: number, mark: RegExp): [Block, number] {
  const { text, at } = lines[first] as Line;
  const items: string[] = [];
  let used = 0;
  for (const line of lines.slice(first)) {
    if (mark.test(line.text)) {
      items.push(line.text.replace(mark, ""));
    } else if (/^\s+\S/.test(line.text) && !fence.test(line.text)) {
      items.push(`${items.pop() ?? ""}\n${line.text.trim()}`);
    } else {
      break;
    }
    used++;
  }
  const start = mark === ordered ? Number(ordered.exec(text)?.[1]) : undefined;
  return [{ kind: "list", at, start, items: items.map(inlines) }, used];
}

/** Code, strong text and addresses, whichever begins first. */
const marks = /(`+)(?!`)([\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([^*\n]*[^*\s])\*\*|(https?:\/\/[^\s<>"'`\\{}|^]+)/g;
const trailing = new Set(".,;:!?)]*_");

export function inlines(text: string): Inline[] {
  const found: Inline[] = [];
  const add = (inline: Inline) => {
    const last = found.at(-1);
    if (inline.kind === "text" && last?.kind === "text") {
      found[found.length - 1] = { kind: "text", text: last.text + inline.text };
    } else if (inline.kind === "link" || inline.text !== "") {
      found.push(inline);
    }
  };
  let at = 0;
  for (const match of text.matchAll(marks)) {
    add({ kind: "text", text: text.slice(at, match.index) });
    at = match.index + match[0].length;
    if (match[1] !== undefined) {
      add({ kind: "code", text: (match[2] ?? "").trim() });
    } else if (match[3] !== undefined) {
      add({ kind: "strong", text: match[3] });
    } else {
      const address = withoutTrailing(match[0]);
      const verdict = checkUrl(address);
      add(verdict.ok ? { kind: "link", url: verdict.url } : { kind: "text", text: address });
      add({ kind: "text", text: match[0].slice(address.length) });
    }
  }
  add({ kind: "text", text: text.slice(at) });
  return found;
}

/** An address without the full stop or bracket that ends the sentence around it. */
function withoutTrailing(address: string): string {
  let end = address.length;
  let open = address.split("(").length - address.split(")").length;
  for (; trailing.has(address.charAt(end - 1)); end--) {
    if (address.charAt(end - 1) === ")") {
      if (open >= 0) {
        break; // it was opened in the address
      }
      open++;
    }
  }
  return address.slice(0, end);
}
