// Makes the library for protobuf smaller in the bundles. Its published code is not touched: what the bundler reads of it is.
//
// Enums are filled by a function that is called at once, which may have side effects as far as a bundler can see, so all of them
// would be carried along; marked as pure, those that nobody uses are dropped. The description of descriptors, without which no
// other one can be read, is a literal in which the same five keys stand hundreds of times; it is written as rows of values.
import { deepStrictEqual } from "node:assert";
import { readFile } from "node:fs/promises";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

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
 * @param {string} literal
 * @returns {string}
 */
function packed(literal) {
  const value = JSON.parse(literal);
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

const checks = /@bufbuild[\\/]protobuf[\\/]dist[\\/]esm[\\/]reflect[\\/]reflect-check\.js$/;
const generated = /[\\/]gen[\\/]es[\\/].*_pb\.ts$/;
const described64 = /fileDesc\("([^"]+)"(?:, \[([^\]]*)\])?\)/;
const ownOptions = "file_throwbar_option_v1_option";

/**
 * The description of a file without the options that say what a person or a policy is shown of it.
 * @param {string} base64
 * @returns {string}
 */
function withoutOptions(base64) {
  const file = fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, "base64"));
  /** @param {import("@bufbuild/protobuf").Message | undefined} options */
  const plain = (options) => {
    if (options !== undefined) {
      delete options.$unknown;
    }
  };
  /** @param {import("@bufbuild/protobuf/wkt").EnumDescriptorProto} each */
  const plainEnum = (each) => {
    plain(each.options);
    for (const value of each.value) {
      plain(value.options);
    }
  };
  /** @param {import("@bufbuild/protobuf/wkt").DescriptorProto} message */
  const plainMessage = (message) => {
    for (const { options } of [message, ...message.field, ...message.oneofDecl]) {
      plain(options);
    }
    message.enumType.forEach(plainEnum);
    message.nestedType.forEach(plainMessage);
  };
  plain(file.options);
  file.messageType.forEach(plainMessage);
  file.enumType.forEach(plainEnum);
  for (const service of file.service) {
    plain(service.options);
    for (const method of service.method) {
      plain(method.options);
    }
  }
  return Buffer.from(toBinary(FileDescriptorProtoSchema, file)).toString("base64").replace(/=+$/, "");
}

/**
 * For what runs in the background. It shows nothing to anybody, so it needs no options of the contract; and every value that
 * it puts into a message has been seen by the compiler, so it needs no checks of them when it runs.
 * @type {import("esbuild").Plugin}
 */
export const bareProtobuf = {
  name: "bare-protobuf",
  setup({ onLoad }) {
    onLoad({ filter: checks }, async ({ path }) => {
      const names = [...(await readFile(path, "utf8")).matchAll(/^export function (\w+)/gm)].map(([, name]) => name);
      return { loader: "js", contents: names.map((name) => `export function ${name}() {}`).join("\n") };
    });
    onLoad({ filter: generated }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replace(described64, (_, base64, imports = "") => {
        const others = imports.split(", ").filter((/** @type {string} */ each) => each !== "" && each !== ownOptions);
        return `fileDesc("${withoutOptions(base64)}", [${others.join(", ")}])`;
      });
      return { loader: "ts", contents };
    });
  },
};
