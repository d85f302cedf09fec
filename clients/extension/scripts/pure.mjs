// Lets the bundler drop enums that nobody uses. The published code of @bufbuild/protobuf fills each one by a function that is
// called at once, which may have side effects as far as a bundler can see, so all enums of the descriptors would be carried along.
import { readFile } from "node:fs/promises";

const published = /@bufbuild[\\/]protobuf[\\/]dist[\\/]esm[\\/].*\.js$/;
const filled =
  /export var (\w+);\n((?:\/\/.*\n|\/\*[\s\S]*?\*\/\n)*)\(function \(\1\) \{([\s\S]*?)\n\}\)\(\1 \|\| \(\1 = \{\}\)\);/g;

/** @type {import("esbuild").Plugin} */
export const pureEnums = {
  name: "pure-enums",
  setup({ onLoad }) {
    onLoad({ filter: published }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      return {
        loader: "js",
        contents: text.replace(
          filled,
          (_, name, comment, body) =>
            `${comment}export var ${name} = /*@__PURE__*/ (function (${name}) {${body}\nreturn ${name};\n})({});`,
        ),
      };
    });
  },
};
