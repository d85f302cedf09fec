/** The two unions as types: what handles an action has to answer with the result of the same name. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Action, type Result, ResultSchema } from "./pb/command.js";

type Member = Exclude<Action["kind"], { case: undefined }>;

/** The name of a command, as callers see it. */
export type Case = Member["case"];

export type ActionOf<C extends Case> = Extract<Member, { case: C }>["value"];

export type ResultOf<C extends Case> = Extract<Result["kind"], { case: C }>["value"];

/** Stands where a client decides that it does not run a command. */
export const declined: unique symbol = Symbol("declined");

/** A whole message is asked for, not its init shape: `{}` would be one of those and say nothing. */
export type Handler<C extends Case, X> = (action: ActionOf<C>, context: X) => Promise<ResultOf<C>>;

/** One entry for each member of the union. A new member does not compile until it is handled or declined. */
export type Handlers<X> = { readonly [C in Case]: Handler<C, X> | typeof declined };

/** The names of the commands that are not declined. */
export function supported<X>(handlers: Handlers<X>): Case[] {
  return (Object.keys(handlers) as Case[]).filter((name) => handlers[name] !== declined);
}

/** Runs an action. Undefined if it is declined or newer than this client. */
export async function execute<X>(handlers: Handlers<X>, action: Action, context: X): Promise<Result | undefined> {
  const name = action.kind.case;
  if (name === undefined || !Object.hasOwn(handlers, name) || handlers[name] === declined) {
    return undefined;
  }
  // Name and value belong together, but the compiler does not follow that through the lookup.
  const run = handlers[name] as Handler<Case, X>;
  const value = await run(action.kind.value, context);
  return create(ResultSchema, {
    kind: { case: name, value } as MessageInitShape<typeof ResultSchema>["kind"] & object,
  });
}
