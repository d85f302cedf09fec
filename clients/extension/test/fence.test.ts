import { expect, test } from "vitest";
import { unfenced } from "../src/panel/thread.js";

test.each([
  ['{"ok":true,"mark":"a1","data":{"closedCount":4},"end":"a1"}', { closedCount: 4 }],
  ['{"ok":false,"mark":"a1","error":{"code":"OFFLINE"},"end":"a1"}', { code: "OFFLINE" }],
  ['{"mark":"a1","data":1,"end":"b2"}', { mark: "a1", data: 1, end: "b2" }],
])("a result is shown without its marks: %s", (content, want) => {
  expect(JSON.parse(unfenced(content))).toEqual(want);
});

test("what is no JSON is shown as it is", () => {
  expect(unfenced("{half")).toBe("{half");
});
