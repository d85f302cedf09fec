// Leaves the options of our own contract out of the bundles of what has no page: what asks, who may call and which field is
// secret is nothing to a program that only reads and writes messages. A page that shows calls reads them, and keeps them.
import { readFile } from "node:fs/promises";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

const generated = /gen[\\/]es[\\/]throwbar[\\/].*_pb\.ts$/;
const described = /fileDesc\("([^"]+)", \[([^\]]*)\]\)/;
const optionFile = "throwbar/option/v1/option.proto";
const optionImport = "file_throwbar_option_v1_option";

/** @param {unknown} value */
const isMessage = (value) => typeof value === "object" && value !== null && "$typeName" in value;

/**
 * Removes what is an extension from the options of everything in a description, and options of which nothing is left then. What
 * the library itself has to know, as that a message is an entry of a map, is no extension.
 * @param {any} message
 */
function strip(message) {
  for (const [key, value] of Object.entries(message)) {
    if (key === "options" && isMessage(value)) {
      delete (/** @type {any} */ (value).$unknown);
      const bare = Object.entries(value).every(
        ([name, each]) => name === "$typeName" || (Array.isArray(each) && each.length === 0),
      );
      if (bare) {
        delete message.options;
      }
    } else if (Array.isArray(value)) {
      value.filter(isMessage).forEach(strip);
    }
  }
}

/**
 * @param {string} encoded
 * @param {boolean} calls
 * @returns {string}
 */
function stripped(encoded, calls) {
  const file = fromBinary(FileDescriptorProtoSchema, base64Decode(encoded));
  strip(file);
  file.dependency = file.dependency.filter((name) => name !== optionFile);
  if (!calls) {
    file.service = [];
  }
  return base64Encode(toBinary(FileDescriptorProtoSchema, file), "std_raw");
}

/**
 * For what has no page. What makes no calls itself needs no services, either.
 * @param {boolean} calls
 * @returns {import("esbuild").Plugin}
 */
export const withoutOptions = (calls) => ({
  name: "without-options",
  setup({ onLoad }) {
    onLoad({ filter: generated }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      if (path.endsWith("option_pb.ts")) {
        return { loader: "ts", contents: text };
      }
      const contents = text.replace(described, (_, encoded, imports) => {
        const rest = imports.split(", ").filter((/** @type {string} */ name) => name !== "" && name !== optionImport);
        return `fileDesc(${JSON.stringify(stripped(encoded, calls))}, [${rest.join(", ")}])`;
      });
      return { loader: "ts", contents };
    });
  },
});
