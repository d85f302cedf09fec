import { createRegistry, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import cases from "../../../gen/es/throwbar/command/v1/checks.json" with { type: "json" };
import { check } from "../src/pb/checks.js";
import { file_throwbar_command_v1_command } from "../src/pb/command.js";

// The members of the unions are in the files that this one imports.
const registry = createRegistry(...file_throwbar_command_v1_command.dependencies);

/** Writes the short forms of a case out: repeated strings and lists, and zero bytes. */
function expand(value: unknown): JsonValue {
  if (Array.isArray(value)) {
    return value.map(expand);
  }
  if (typeof value !== "object" || value === null) {
    return value as JsonValue;
  }
  const { $bytes: bytes, $repeat: repeat, $times: times } = value as Record<string, unknown>;
  if (bytes !== undefined) {
    return Buffer.alloc(Number(bytes)).toString("base64");
  }
  if (typeof repeat === "string") {
    return repeat.repeat(Number(times));
  }
  if (Array.isArray(repeat)) {
    return Array.from({ length: Number(times) }, () => expand(repeat[0]));
  }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, expand(inner)]));
}

const ordered = (found: readonly { field: string; rule: string }[]) =>
  found.map(({ field, rule }) => `${field} ${rule}`).sort();

test.each(cases.map((each, index) => ({ ...each, index })))("$index $message", ({ message, value, broken }) => {
  const schema = registry.getMessage(message);
  if (schema === undefined) {
    throw new Error(`${message} is not in the registry`);
  }
  expect(ordered(check(fromJson(schema, expand(value))))).toEqual(ordered(broken));
});
