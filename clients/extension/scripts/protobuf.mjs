// Makes the library for protobuf smaller in the bundles. Its published code is not touched: what the bundler reads of it is.
//
// Enums are filled by a function that is called at once, which may have side effects as far as a bundler can see, so all of them
// would be carried along; marked as pure, those that nobody uses are dropped. The description of descriptors, without which no
// other one can be read, is a literal in which the same five keys stand hundreds of times; it is written as rows of values.
import { deepStrictEqual } from "node:assert";
import { readFile } from "node:fs/promises";

const published = /@bufbuild[\\/]protobuf[\\/]dist[\\/]esm[\\/].*\.js$/;
const filled =
  /export var (\w+);\n((?:\/\/.*\n|\/\*[\s\S]*?\*\/\n)*)\(function \(\1\) \{([\s\S]*?)\n\}\)\(\1 \|\| \(\1 = \{\}\)\);/g;
const described = /\/\*@__PURE__\*\/ boot\((\{.*\})\);/;

const keys = ["name", "number", "type", "label", "typeName"];
const prefix = ".google.protobuf.";

/**
 * A row of values for an object that has nothing but the first few of the keys; undefined for any other.
 * @param {Record<string, unknown>} value
 * @returns {string | undefined}
 */
function row(value) {
  const own = Object.keys(value);
  const plain = own.every((key, at) => key === keys[at] && !/[,;~]/.test(String(value[key])));
  return plain ? own.map((key) => String(value[key]).replace(prefix, "~")).join(",") : undefined;
}

/**
 * Lists of objects become lists of texts, in which there are many rows, and of objects that do not fit into rows.
 * @param {any} value
 * @returns {any}
 */
function pack(value) {
  if (Array.isArray(value) && value.every((each) => typeof each === "object")) {
    const out = [];
    let rows = [];
    for (const each of value) {
      const text = row(each);
      if (text === undefined) {
        out.push(...(rows.length > 0 ? [rows.join(";")] : []), pack(each));
        rows = [];
      } else {
        rows.push(text);
      }
    }
    return [...out, ...(rows.length > 0 ? [rows.join(";")] : [])];
  }
  return typeof value === "object" && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, pack(each)]))
    : value;
}

/** The way back, in the bundle. */
const unpackSource = `(value) => {
  const keys = ${JSON.stringify(keys)};
  const rows = (text) => text.split(";").map((row) => Object.fromEntries(row.split(",").map((each, at) =>
    [keys[at], at > 0 && at < 4 ? Number(each) : each.replace("~", ${JSON.stringify(prefix)})])));
  const unpack = (each) => Array.isArray(each)
    ? each.flatMap((one) => typeof one === "string" ? rows(one) : [unpack(one)])
    : typeof each === "object"
      ? Object.fromEntries(Object.entries(each).map(([key, one]) => [key, unpack(one)]))
      : each;
  return unpack(value);
}`;

/**
 * Of the options of a field only this one changes how it is read and written; the others are for those who generate code.
 * @param {{ packed?: boolean }} options
 */
function needed({ packed: is }) {
  return is === undefined ? undefined : { packed: is };
}

/**
 * @param {string} literal
 * @returns {string}
 */
function packed(literal) {
  const value = JSON.parse(literal, (key, each) => (key === "options" ? needed(each) : each));
  const short = JSON.stringify(pack(value));
  // What is checked is what the bundle runs.
  deepStrictEqual(new Function(`return ${unpackSource}`)()(JSON.parse(short)), value);
  return `/*@__PURE__*/ boot((${unpackSource})(${short}));`;
}

/** @type {import("esbuild").Plugin} */
export const smallProtobuf = {
  name: "small-protobuf",
  setup({ onLoad }) {
    onLoad({ filter: published }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text
        .replace(
          filled,
          (_, name, comment, body) =>
            `${comment}export var ${name} = /*@__PURE__*/ (function (${name}) {${body}\nreturn ${name};\n})({});`,
        )
        .replace(described, (_, literal) => packed(literal));
      return { loader: "js", contents };
    });
  },
};
