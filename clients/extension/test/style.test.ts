/** The pages' style: contrast in both schemes, computed from the properties that hold all colours, and what it has to have. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const folder = fileURLToPath(new URL("../static/", import.meta.url));
const page = await readFile(`${folder}page.css`, "utf8");
const panel = await readFile(`${folder}panel.css`, "utf8");
const cards = await readFile(`${folder}cards.css`, "utf8");

type Colours = ReadonlyMap<string, string>;

const colourOf = /(--[a-z-]+):\s*(#[0-9a-f]{6});/g;

function colours(css: string): Colours {
  return new Map([...css.matchAll(colourOf)].map((match) => [match[1] ?? "", match[2] ?? ""]));
}

const [lightCss = "", darkCss = ""] = page.split("@media (prefers-color-scheme: dark)");
const light = colours(lightCss);
const dark: Colours = new Map([...light, ...colours(darkCss)]);

/** Relative luminance as WCAG 2.2 defines it. */
function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [dim = 0, bright = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (bright + 0.05) / (dim + 0.05);
}

const grounds = ["--ground", "--raised", "--sunk"];

const text: [string, string][] = [
  ...["--text", "--muted", "--accent", "--danger", "--warn"].flatMap((ink) =>
    grounds.map((on): [string, string] => [ink, on]),
  ),
  ["--on-accent", "--accent"],
  ["--text", "--danger-ground"],
  ["--text", "--warn-ground"],
  ["--warn", "--warn-ground"],
  ["--danger", "--danger-ground"],
];

/** Borders of controls, marks and the focus: what has to be seen to use the page. */
const shapes: [string, string][] = ["--edge", "--focus", "--ok", "--warn", "--danger"].flatMap((ink) =>
  grounds.map((on): [string, string] => [ink, on]),
);

test.each([
  ["light", light],
  ["dark", dark],
] as const)("contrast in the %s scheme", (_, scheme) => {
  const of = (name: string) => {
    const hex = scheme.get(name);
    expect(hex, name).toBeDefined();
    return hex ?? "";
  };
  const weak = (pairs: readonly [string, string][], least: number) =>
    pairs
      .filter(([ink, on]) => contrast(of(ink), of(on)) < least)
      .map(([ink, on]) => `${ink} on ${on}: ${contrast(of(ink), of(on)).toFixed(2)}`);
  expect(weak(text, 4.5)).toEqual([]);
  expect(weak(shapes, 3)).toEqual([]);
});

test("contrast is computed as defined", () => {
  expect(contrast("#000000", "#ffffff")).toBe(21);
  expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
});

test("every colour is one of those properties, in both schemes", () => {
  expect([...colours(darkCss).keys()].sort()).toEqual([...light.keys()].sort());
  const rest = `${page.replaceAll(colourOf, "")}${panel}${cards}`.replaceAll(/\/\*[\s\S]*?\*\//g, "");
  const shadow = /rgb\(0 0 0 \/ \d+%\)/g; // it carries nothing
  expect(rest.replaceAll(shadow, "")).not.toMatch(/#[0-9a-f]{3,8}\b|\b(rgb|hsl|oklch|color-mix)\(/i);
  for (const [, name = ""] of rest.matchAll(/var\((--[a-z-]+)\)/g)) {
    expect([...light.keys(), "--radius", "--mono"]).toContain(name);
  }
});

test("lengths that hold text grow with it, and the focus is always seen", () => {
  expect(panel + cards).not.toMatch(/\b(width|height|font-size|padding|margin)[a-z-]*:\s*\d+px/);
  expect(page).toMatch(/:focus-visible \{\s*outline: 2px solid var\(--focus\)/);
  expect(cards).not.toMatch(/outline:\s*(none|0)|animation|transition/);
  for (const css of [page, panel]) {
    expect(css).not.toMatch(/outline:\s*(none|0)/);
    expect(css).toContain("@media (forced-colors: active)");
    // Nothing moves for whoever does not want that.
    const moving = css.split("@media (prefers-reduced-motion: no-preference)");
    expect(moving).toHaveLength(2);
    expect(moving[0]).not.toMatch(/animation|transition/);
  }
});
