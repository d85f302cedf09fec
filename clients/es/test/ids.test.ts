import { expect, test } from "vitest";
import { formatId, newBootTag, parseId } from "../src/ids.js";
import table from "../testdata/ids.json" with { type: "json" };

test.each(table.valid)("$id is read and written", ({ id, device, kind, boot, native }) => {
  const parsed = parseId(id);
  expect(parsed).toEqual({ device, kind, boot, native: Number(native) });
  expect(parsed && formatId(parsed)).toBe(id);
});

test.each(table.invalid)("%j is refused", (id) => {
  expect(parseId(id)).toBeUndefined();
});

test("a number too large for a browser is still a valid id", () => {
  expect(parseId("a_tb-9223372036854775807")).toBeDefined();
});

test("a boot tag is four characters that fit into an id", () => {
  const tags = new Set<string>();
  for (let n = 0; n < 200; n++) {
    const tag = newBootTag((bytes) => crypto.getRandomValues(bytes));
    expect(tag).toMatch(/^[a-z2-7]{4}$/);
    expect(parseId(`a_t${tag}-1`)?.boot).toBe(tag);
    tags.add(tag);
  }
  expect(tags.size).toBeGreaterThan(190);
});
