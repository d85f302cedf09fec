import { create } from "@bufbuild/protobuf";
import { expect, expectTypeOf, test } from "vitest";
import { type Case, declined, execute, type Handlers, type ResultOf, supported } from "../src/commands.js";
import { ActionSchema } from "../src/pb/command.js";
import { CloseTabs_ResultSchema, GetActiveTab_ResultSchema, OpenTab_ResultSchema } from "../src/pb/tabs.js";

const names = ActionSchema.fields.map((field) => field.localName as Case);
const nothing = Object.fromEntries(names.map((name) => [name, declined])) as Handlers<string>;
const handlers: Handlers<string> = {
  ...nothing,
  openTab: async ({ url }, context) => create(OpenTab_ResultSchema, { tabId: context, url }),
};

test("a handler gets the action and the context, and its result is the member of the same name", async () => {
  const action = create(ActionSchema, { kind: { case: "openTab", value: { url: "x" } } });
  const result = await execute(handlers, action, "ctx");
  expect(result?.kind).toMatchObject({ case: "openTab", value: { tabId: "ctx", url: "x" } });
});

test("what is declined, and what is not set at all, has no result", async () => {
  const action = create(ActionSchema, { kind: { case: "closeTabs", value: {} } });
  expect(await execute(handlers, action, "")).toBeUndefined();
  expect(await execute(handlers, create(ActionSchema), "")).toBeUndefined();
  expect(supported(handlers)).toEqual(["openTab"]);
});

test("what does not fit does not compile", () => {
  expectTypeOf<ResultOf<"openTab">["url"]>().toEqualTypeOf<string>();
  // @ts-expect-error a member is missing
  ({ openTab: declined }) satisfies Handlers<string>;
  // @ts-expect-error the result of another command
  ({ ...nothing, openTab: async () => create(CloseTabs_ResultSchema) }) satisfies Handlers<string>;
  // @ts-expect-error no message at all, which would say nothing
  ({ ...nothing, getActiveTab: async () => ({}) }) satisfies Handlers<string>;
  // @ts-expect-error a name that is no command
  ({ ...nothing, brew: declined }) satisfies Handlers<string>;
  ({ ...nothing, getActiveTab: async () => create(GetActiveTab_ResultSchema) }) satisfies Handlers<string>;
});
