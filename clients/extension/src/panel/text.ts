/**
 * Text that a page, a model or another program chose. Characters that a reader would not see, or that change how the rest is
 * shown, become escapes: the rule of the Go package agent/tool/result, plus halves of surrogate pairs, which only this
 * language can hold.
 */

const unseen =
  // The two selectors that choose between text and emoji (FE0E, FE0F) are harmless and common; the others can carry text.
  // biome-ignore lint/suspicious/noMisleadingCharacterClass: each of them stands alone here.
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0d\u{e0100}-\u{e01ef}]/u;

const layout = new Set(["\n", "\t"]);

export interface Piece {
  readonly text: string;
  /** Whether it is the escape of a character that cannot be seen. */
  readonly escape: boolean;
}

function escapeOf(char: string): string {
  return Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`).join(
    "",
  );
}

/** Cuts a text into what is shown as it is and the escapes between. Line ends are one character each. */
export function pieces(text: string): Piece[] {
  const lines = text.replaceAll("\r\n", "\n");
  if (!unseen.test(lines)) {
    return lines === "" ? [] : [{ text: lines, escape: false }];
  }
  const found: Piece[] = [];
  let plain = "";
  for (const char of lines) {
    if (layout.has(char) || !unseen.test(char)) {
      plain += char;
      continue;
    }
    if (plain !== "") {
      found.push({ text: plain, escape: false });
      plain = "";
    }
    found.push({ text: escapeOf(char), escape: true });
  }
  if (plain !== "") {
    found.push({ text: plain, escape: false });
  }
  return found;
}

/** The same as one text, for names and titles of controls. */
export function visible(text: string): string {
  return pieces(text)
    .map((piece) => piece.text)
    .join("");
}

/** One line of at most so many characters. */
export function short(text: string, most: number): string {
  const line = visible(text.replace(/\s+/g, " ").trim());
  const chars = Array.from(line);
  return chars.length <= most ? line : `${chars.slice(0, most - 1).join("")}…`;
}
