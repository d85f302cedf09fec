// @ts-check
// The manifest of each target: manifest.json is what all have in common, a script in targets/ says what is different.
import { readFileSync } from "node:fs";
import { chrome } from "./targets/chrome.mjs";
import { firefox } from "./targets/firefox.mjs";

/**
 * @typedef {object} Target
 * @property {"chrome" | "firefox"} name Folder in dist and in src/platform.
 * @property {string} esbuild The oldest browser that the code is compiled for.
 * @property {readonly string[]} entries Files of src/entrypoints.
 * @property {Readonly<Record<string, number>>} limits How many bytes a built entry may have.
 * @property {readonly string[]} without Files of static that this target has no use for.
 * @property {readonly string[]} permissions Beside the common ones.
 * @property {Readonly<Record<string, unknown>>} manifest Keys beside the common ones.
 */

/** @type {readonly Target[]} */
export const targets = [chrome, firefox];

/**
 * @param {string} name
 * @returns {Target}
 */
export function targetOf(name) {
  const target = targets.find((each) => each.name === name);
  if (target === undefined) {
    throw new Error(`no target ${name}; there are ${targets.map((each) => each.name).join(", ")}`);
  }
  return target;
}

/**
 * @param {Target} target
 * @returns {Record<string, unknown> & { permissions: string[] }}
 */
export function manifestOf(target) {
  const common = JSON.parse(readFileSync(new URL("../manifest.json", import.meta.url), "utf8"));
  for (const key of Object.keys(target.manifest)) {
    if (key in common) {
      throw new Error(`${key} is in manifest.json and in the target ${target.name}`);
    }
  }
  return { ...common, ...target.manifest, permissions: [...common.permissions, ...target.permissions] };
}
