/** The table of recoveries against what the contract says of each command. */
import { getOption } from "@bufbuild/protobuf";
import { ActionSchema } from "@throwbar/es/pb/command";
import { command } from "@throwbar/es/pb/option";
import { expect, test } from "vitest";
import { recoveries } from "../src/commands/handlers.js";

test.each(ActionSchema.fields.map((field) => field.localName))(
  "%s is done again only if that changes nothing",
  (name) => {
    const field = ActionSchema.fields.find((each) => each.localName === name);
    if (field?.message === undefined) {
      throw new Error(`${name} is no message`);
    }
    const { idempotent } = getOption(field.message, command);
    const how = recoveries[name as keyof typeof recoveries];
    // One that may be done twice may also be taken up, to tell what it changed the first time.
    expect(idempotent ? ["again", "function"] : ["interrupted", "function"]).toContain(
      typeof how === "function" ? "function" : how,
    );
  },
);
