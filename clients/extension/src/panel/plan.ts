/**
 * What an approval is about, read from the contract's descriptors: each argument with its kind, so that it can be shown, edited
 * and remembered without knowing any command by name.
 */
import {
  clone,
  create,
  type DescField,
  type DescMessage,
  getOption,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { parseId } from "@throwbar/es/ids";
import { check } from "@throwbar/es/pb/checks";
import { type Action, ActionSchema } from "@throwbar/es/pb/command";
import type { PlannedTarget } from "@throwbar/es/pb/commands";
import { requires_approval, sensitive, Target, target } from "@throwbar/es/pb/option";
import type { ApprovalCall } from "./approvals.js";
import { counted, spoken } from "./words.js";

/** How an argument is edited. */
export type Editor = "list" | "text" | "number" | "flag" | "choice" | "none";

export interface Argument {
  /** Name in the contract's JSON form. */
  readonly name: string;
  readonly label: string;
  readonly editor: Editor;
  /** As it is read by a person; empty if it is not set. */
  readonly shown: string;
  readonly isSet: boolean;
  /** Whether it can be left out. */
  readonly optional: boolean;
  /** Hidden from everybody: it stays as it was proposed. */
  readonly hidden: boolean;
  /** Where it is true, a person is always asked. */
  readonly grave: boolean;
  /** Whether it says which tabs the command acts on. */
  readonly tabs: boolean;
  readonly items: readonly string[];
  /** The names of the values that can be chosen. */
  readonly choices: readonly string[];
}

interface Body {
  readonly desc: DescMessage;
  readonly fields: readonly DescField[];
  readonly message: ReflectMessage;
}

/** The command of an action. Undefined for one that this panel does not know: it is not decided here. */
function bodyOf(action: Action | undefined): Body | undefined {
  const name = action?.kind.case;
  const field = ActionSchema.fields.find(({ localName }) => localName === name);
  if (action === undefined || field?.fieldKind !== "message") {
    return undefined;
  }
  const message = reflect(field.message, action.kind.value as Message);
  return { desc: field.message, fields: field.message.fields, message };
}

/** Whether this panel can show all of an action. */
export function readable(action: Action | undefined): boolean {
  const body = bodyOf(action);
  return body !== undefined && (body.message.getUnknown() ?? []).length === 0;
}

export function argumentsOf(action: Action | undefined): Argument[] {
  const body = bodyOf(action);
  return body?.fields.map((field) => argumentOf(field, body.message)) ?? [];
}

function argumentOf(field: DescField, message: ReflectMessage): Argument {
  const hidden = getOption(field, sensitive);
  const isSet = message.isSet(field) && !hidden;
  const kind = getOption(field, target);
  return {
    name: field.jsonName,
    label: spoken(field.jsonName),
    editor: hidden ? "none" : editorOf(field),
    shown: hidden ? "hidden" : isSet ? shownValue(field, message) : "",
    isSet,
    optional: field.presence === FeatureSet_FieldPresence.EXPLICIT,
    hidden,
    grave: getOption(field, requires_approval) && isSet && message.get(field) === true,
    tabs: kind === Target.TAB || kind === Target.TAB_URL,
    items: isSet && isTexts(field) ? Array.from(message.get(field) as Iterable<string>) : [],
    choices: field.fieldKind === "enum" ? field.enum.values.filter(({ number }) => number !== 0).map(valueName) : [],
  };
}

const valueName = ({ localName }: { readonly localName: string }) => localName.toLowerCase();

const isTexts = (field: DescField) =>
  field.fieldKind === "list" && field.listKind === "scalar" && field.scalar === ScalarType.STRING;

const numbers = new Set([ScalarType.INT32, ScalarType.UINT32]);

function editorOf(field: DescField): Editor {
  switch (field.fieldKind) {
    case "list":
      return isTexts(field) ? "list" : "none";
    case "enum":
      return "choice";
    case "scalar":
      if (field.scalar === ScalarType.STRING) {
        return "text";
      }
      return field.scalar === ScalarType.BOOL ? "flag" : numbers.has(field.scalar) ? "number" : "none";
    default:
      return "none";
  }
}

function shownValue(field: DescField, message: ReflectMessage): string {
  const value: unknown = message.get(field);
  if (field.fieldKind === "enum") {
    return valueName(field.enum.value[value as number] ?? { localName: String(value) });
  }
  if (field.fieldKind === "list") {
    return isTexts(field) ? counted(Array.from(value as Iterable<unknown>).length, "item") : "a list";
  }
  if (field.fieldKind === "scalar") {
    return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
  }
  return "a message";
}

/** What a person has changed, by the argument's name: the items that stay, a text, or undefined to leave it out. */
export type Changes = Readonly<Record<string, readonly string[] | string | undefined>>;

/** The action with the changes, and what is wrong with it; no problem means that it keeps the contract's rules. */
export function withChanges(action: Action, changes: Changes): { readonly action: Action; readonly problem: string } {
  const body = bodyOf(action);
  if (body === undefined) {
    return { action, problem: "this command is not known here" };
  }
  const value = clone(body.desc, body.message.message);
  const edited = reflect(body.desc, value);
  for (const field of body.fields.filter(({ jsonName }) => Object.hasOwn(changes, jsonName))) {
    const problem = setField(edited, field, changes[field.jsonName]);
    if (problem !== "") {
      return { action, problem };
    }
  }
  const made = create(ActionSchema, { kind: { case: action.kind.case, value } as Action["kind"] });
  const [broken] = check(value);
  return { action: made, problem: broken === undefined ? "" : `${spoken(broken.field)} ${broken.text}.` };
}

function setField(to: ReflectMessage, field: DescField, value: readonly string[] | string | undefined): string {
  to.clear(field);
  if (field.fieldKind === "list" && Array.isArray(value)) {
    const list = to.get(field);
    for (const item of value) {
      list.add(item);
    }
  }
  if (typeof value !== "string") {
    return "";
  }
  if (field.fieldKind === "enum") {
    const found = field.enum.values.find((each) => valueName(each) === value);
    if (found !== undefined) {
      to.set(field, found.number);
    }
  } else if (field.fieldKind === "scalar" && numbers.has(field.scalar)) {
    const number = Number(value);
    if (value.trim() === "" || !Number.isInteger(number)) {
      return `${spoken(field.jsonName)} has to be a whole number.`;
    }
    try {
      to.set(field, number);
    } catch {
      return `${spoken(field.jsonName)} cannot be ${number}.`;
    }
  } else if (field.fieldKind === "scalar") {
    to.set(field, field.scalar === ScalarType.BOOL ? value === "yes" : value);
  }
  return "";
}

/** All arguments as JSON, for whoever wants to see each letter. */
export function wholeAction(action: Action | undefined): string {
  return action === undefined ? "" : JSON.stringify(toJson(ActionSchema, action), undefined, 1);
}

/** One line about a call: what, where, on how much. */
export function callTitle({ name, deviceName, deviceId, targets }: ApprovalCall): string {
  const where = deviceName || deviceId;
  const on = where === "" ? "" : ` on ${where}`;
  return `${spoken(name)}${on}${targets.length === 0 ? "" : `: ${counted(targets.length, thing(targets))}`}`;
}

function thing(targets: readonly PlannedTarget[]): string {
  const kinds = new Set(targets.map(({ id }) => parseId(id)?.kind));
  return kinds.size === 1 && kinds.has("tab") ? "tab" : "target";
}

/** A pattern that means exactly this text. */
export const exactly = (text: string): string => text.replaceAll(/[\\*]/g, (char) => `\\${char}`);

/** A pattern that covers the addresses of all targets, where they are of one site; undefined otherwise. */
export function sitePattern(targets: readonly PlannedTarget[]): string | undefined {
  const sites = new Set(
    targets.map(({ url }) => {
      try {
        const { origin } = new URL(url);
        return origin === "null" ? "" : `${exactly(origin)}/*`;
      } catch {
        return "";
      }
    }),
  );
  const [site] = sites;
  return sites.size === 1 && site !== "" ? site : undefined;
}
