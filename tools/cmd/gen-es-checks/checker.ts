import type { Message } from "@bufbuild/protobuf";

/** One broken rule. */
export interface Violation {
  /** Path to the value with the names of the contract, for example tab_ids[3]. */
  readonly field: string;
  /** Id of the rule, for example string.min_len. */
  readonly rule: string;
  /** What is wrong, for a person. */
  readonly text: string;
}

export interface Check {
  readonly rule: string;
  readonly text: string;
  readonly ok: (value: unknown) => boolean;
}

interface Field {
  /** Name in the contract. */
  readonly name: string;
  /** Name in the message object. */
  readonly key: string;
  /** The oneof that holds it. */
  readonly oneof?: string;
  /** Whether it has to be set or, for a field without presence, to differ from zero. */
  readonly required?: "set" | "nonzero";
  /** Whether its rules are left out while it is zero. */
  readonly skipZero?: boolean;
  readonly checks?: readonly Check[];
  /** Checks of each item of a list. */
  readonly each?: readonly Check[];
}

type Table = Readonly<Record<string, readonly Field[]>>;

const bytesOf = (value: unknown): number =>
  value instanceof Uint8Array ? value.length : new TextEncoder().encode(value as string).length;
const runesOf = (value: unknown): number => {
  let count = 0;
  for (const _ of value as string) {
    count++;
  }
  return count;
};
const itemsOf = (value: unknown): readonly unknown[] => value as readonly unknown[];

export const minLen = (n: number): Check => ({
  rule: "string.min_len",
  text: n === 1 ? "must not be empty" : `must be at least ${n} characters long`,
  ok: (value) => runesOf(value) >= n,
});
export const maxLen = (n: number): Check => ({
  rule: "string.max_len",
  text: `must be at most ${n} characters long`,
  ok: (value) => runesOf(value) <= n,
});
export const exactLen = (n: number): Check => ({
  rule: "string.len",
  text: `must be ${n} characters long`,
  ok: (value) => runesOf(value) === n,
});
export const minBytes = (rule: string, n: number): Check => ({
  rule,
  text: `must be at least ${n} bytes long`,
  ok: (value) => bytesOf(value) >= n,
});
export const maxBytes = (rule: string, n: number): Check => ({
  rule,
  text: `must be at most ${n} bytes long`,
  ok: (value) => bytesOf(value) <= n,
});
export const exactBytes = (rule: string, n: number): Check => ({
  rule,
  text: `must be ${n} bytes long`,
  ok: (value) => bytesOf(value) === n,
});
export const prefix = (part: string): Check => ({
  rule: "string.prefix",
  text: `must begin with ${part}`,
  ok: (value) => (value as string).startsWith(part),
});
export const suffix = (part: string): Check => ({
  rule: "string.suffix",
  text: `must end with ${part}`,
  ok: (value) => (value as string).endsWith(part),
});
export const contains = (part: string): Check => ({
  rule: "string.contains",
  text: `must contain ${part}`,
  ok: (value) => (value as string).includes(part),
});
export const notContains = (part: string): Check => ({
  rule: "string.not_contains",
  text: `must not contain ${part}`,
  ok: (value) => !(value as string).includes(part),
});
export const pattern = (source: string): Check => ({
  rule: "string.pattern",
  text: `must match ${source}`,
  ok: (value) => new RegExp(source, "u").test(value as string),
});
export const oneOf = (rule: string, allowed: readonly unknown[]): Check => ({
  rule,
  text: `must be one of ${allowed.join(", ")}`,
  ok: (value) => allowed.includes(value),
});
export const noneOf = (rule: string, refused: readonly unknown[]): Check => ({
  rule,
  text: `must not be one of ${refused.join(", ")}`,
  ok: (value) => !refused.includes(value),
});
export const defined = (numbers: readonly number[]): Check => ({
  rule: "enum.defined_only",
  text: "must be a known value",
  ok: (value) => numbers.includes(value as number),
});
export const above = (rule: string, low: number | bigint, inclusive: boolean): Check => ({
  rule,
  text: `must be ${inclusive ? "at least" : "more than"} ${low}`,
  ok: (value) => (inclusive ? (value as number) >= low : (value as number) > low),
});
export const below = (rule: string, high: number | bigint, inclusive: boolean): Check => ({
  rule,
  text: `must be ${inclusive ? "at most" : "less than"} ${high}`,
  ok: (value) => (inclusive ? (value as number) <= high : (value as number) < high),
});
/** Two bounds are one rule with one id. */
export const both = (rule: string, low: Check, high: Check): Check => ({
  rule,
  text: `${low.text} and ${high.text.replace(/^must be /, "")}`,
  ok: (value) => low.ok(value) && high.ok(value),
});
export const minItems = (n: number): Check => ({
  rule: "repeated.min_items",
  text: n === 1 ? "must not be empty" : `must have at least ${n} items`,
  ok: (value) => itemsOf(value).length >= n,
});
export const maxItems = (n: number): Check => ({
  rule: "repeated.max_items",
  text: `must have at most ${n} items`,
  ok: (value) => itemsOf(value).length <= n,
});
export const unique = (): Check => ({
  rule: "repeated.unique",
  text: "must not hold the same item twice",
  ok: (value) => new Set(itemsOf(value)).size === itemsOf(value).length,
});

function isZero(value: unknown): boolean {
  return value === undefined || !value || ((Array.isArray(value) || value instanceof Uint8Array) && value.length === 0);
}

function valueOf(message: Message, field: Field): unknown {
  const object = message as unknown as Readonly<Record<string, unknown>>;
  if (field.oneof === undefined) {
    return object[field.key];
  }
  const chosen = object[field.oneof] as { readonly case?: string; readonly value?: unknown };
  return chosen.case === field.key ? chosen.value : undefined;
}

function broken(field: string, checks: readonly Check[] | undefined, value: unknown): Violation[] {
  return (checks ?? []).filter((rule) => !rule.ok(value)).map(({ rule, text }) => ({ field, rule, text }));
}

function inside(path: string, value: unknown): Violation[] {
  const type = (value as { readonly $typeName?: string } | undefined)?.$typeName;
  return type !== undefined && Object.hasOwn(table, type) ? check(value as Message, `${path}.`) : [];
}

function checkField(path: string, field: Field, value: unknown): Violation[] {
  const zero = isZero(value);
  if (value === undefined ? field.required !== undefined : zero && field.required === "nonzero") {
    return [{ field: path, rule: "required", text: "is required" }];
  }
  if (value === undefined || (zero && field.skipZero === true)) {
    return [];
  }
  const found = broken(path, field.checks, value);
  if (Array.isArray(value)) {
    value.forEach((item: unknown, index) => {
      found.push(...broken(`${path}[${index}]`, field.each, item), ...inside(`${path}[${index}]`, item));
    });
    return found;
  }
  return [...found, ...inside(path, value)];
}

/** Finds every rule that a message breaks, also inside the messages that it holds. */
export function check(message: Message, path = ""): Violation[] {
  return (table[message.$typeName] ?? []).flatMap((field) =>
    checkField(path + field.name, field, valueOf(message, field)),
  );
}
