/** What one tool call did, in words, read from its arguments and its typed result. No command is known here by name. */
import { parseId } from "@throwbar/es/ids";
import { counted, errorText, spoken, statusText } from "./words.js";

export interface Thing {
  readonly title: string;
  readonly url: string;
}

/** What earlier results have said of ids: titles of tabs, names of devices. */
export interface Known {
  readonly things: ReadonlyMap<string, Thing>;
  readonly devices: ReadonlyMap<string, string>;
}

export const nothingKnown: Known = { things: new Map(), devices: new Map() };

type Json = Record<string, unknown>;

export interface Row extends Thing {
  readonly id: string;
  readonly status: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly newId: string;
}

export interface Problem {
  readonly title: string;
  readonly message: string;
  readonly advice: string;
}

export interface Activity {
  readonly title: string;
  readonly device: string;
  /** Counts, such as "12 closed". */
  readonly facts: readonly string[];
  readonly problems: readonly Problem[];
  readonly rows: readonly Row[];
  /** What a person made of the call before it ran. */
  readonly edited: boolean;
  readonly personSaid: string;
}

export const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);

export function parsed(json: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What a tool answered, without the marks that fence data for the model; undefined for what has none. */
export function answerOf(content: string): Json | undefined {
  const fence = parsed(content);
  if (fence === undefined || typeof fence.mark !== "string" || fence.mark !== fence.end) {
    return undefined;
  }
  const body = fence.error ?? fence.data;
  return isObject(body) ? body : undefined;
}

/** Adds what a result says of ids. Returns the very same where it says nothing. */
export function learn(known: Known, content: string): Known {
  const things = new Map(known.things);
  const devices = new Map(known.devices);
  const walk = (value: unknown, depth: number): void => {
    if (depth > 6) {
      return;
    }
    if (Array.isArray(value)) {
      for (const each of value) {
        walk(each, depth + 1);
      }
    } else if (isObject(value)) {
      note(value, things, devices);
      for (const each of Object.values(value)) {
        walk(each, depth + 1);
      }
    }
  };
  walk(answerOf(content), 0);
  return things.size === known.things.size && devices.size === known.devices.size ? known : { things, devices };
}

function note(value: Json, things: Map<string, Thing>, devices: Map<string, string>): void {
  const deviceId = text(value.deviceId);
  const deviceName = text(value.deviceName) || text(value.name);
  if (deviceId !== "" && deviceName !== "") {
    devices.set(deviceId, deviceName);
  }
  const thing = { title: text(value.title), url: text(value.url) };
  if (thing.title === "" && thing.url === "") {
    return;
  }
  const ids = Object.entries(value).filter(([key, id]) => key.endsWith("Id") && key !== "deviceId" && text(id) !== "");
  const [first] = ids;
  for (const [key, id] of ids) {
    // The first id is the thing's own; of the others only those of tabs can have its title.
    if (key === first?.[0] || parseId(text(id))?.kind === "tab") {
      things.set(text(id), thing);
    }
  }
}

/** Ids of what a call is about, from its arguments. */
function targetsOf(args: Json): string[] {
  return Object.entries(args).flatMap(([key, value]) => {
    if (/Ids$/.test(key) && Array.isArray(value)) {
      return value.filter((id): id is string => typeof id === "string");
    }
    // A window or group beside the targets says where they go.
    const place = typeof value === "string" ? parseId(value)?.kind : undefined;
    const target = /Id$/.test(key) && key !== "deviceId" && place !== "window" && place !== "group";
    return target && typeof value === "string" ? [value] : [];
  });
}

export function describe(name: string, args: string, content: string, known: Known): Activity {
  const asked = parsed(args) ?? {};
  const answer = answerOf(content);
  const ran = objects(answer?.ranInstead);
  const parts = answer === undefined ? [] : (objects(answer.devices).filter(isOutcome) satisfies Json[]);
  const outcomes = parts.length > 0 ? parts : answer === undefined ? [] : [answer];
  const targets =
    ran.length > 0 ? ran.flatMap(({ arguments: a }) => targetsOf(isObject(a) ? a : {})) : targetsOf(asked);
  return {
    title: spoken(name),
    device: deviceOf(asked, targets, outcomes, known),
    facts: factsOf(outcomes),
    problems: outcomes.flatMap(problemsOf),
    rows: rowsOf(targets, outcomes, text(answer?.note).includes("left out"), known),
    edited: ran.length > 0,
    personSaid: text(answer?.personSaid),
  };
}

/** Lists of devices are a query's rows; the outcomes of a command on several devices look like this. */
const isOutcome = (each: Json): boolean =>
  text(each.deviceId) !== "" && (isObject(each.error) || Object.keys(each).some((key) => key.endsWith("Count")));

function deviceOf(args: Json, targets: readonly string[], outcomes: readonly Json[], known: Known): string {
  const named = outcomes.map((each) => text(each.deviceName) || known.devices.get(text(each.deviceId)) || "");
  const said = [...new Set(named.filter((name) => name !== ""))];
  if (said.length > 0) {
    return said.length > 2 ? counted(said.length, "device") : said.join(", ");
  }
  const ids = new Set(
    [text(args.deviceId), ...targets.map((id) => parseId(id)?.device ?? "")].filter((id) => id !== ""),
  );
  return ids.size > 2 ? counted(ids.size, "device") : [...ids].map((id) => known.devices.get(id) ?? id).join(", ");
}

function factsOf(outcomes: readonly Json[]): string[] {
  const counts = new Map<string, number>();
  const add = (words: string, n: number) => counts.set(words, (counts.get(words) ?? 0) + n);
  let more = "";
  for (const outcome of outcomes) {
    for (const [key, value] of Object.entries(outcome)) {
      if (typeof value === "number" && key.endsWith("Count")) {
        add(spoken(key.slice(0, -"Count".length)).toLowerCase(), value);
      } else if (Array.isArray(value) && value.every(isObject) && key !== "items" && key !== "ranInstead") {
        add(spoken(key).toLowerCase(), value.length);
      } else if (key === "sideEffects" && isObject(value)) {
        besides(value).forEach(([words, n]) => {
          add(words, n);
        });
      }
    }
    for (const item of objects(outcome.items)) {
      if (text(item.status) !== "ok") {
        add(statusText(text(item.status)), 1);
      }
    }
    more ||= text(outcome.nextPageToken) === "" ? "" : "and more";
  }
  const said = [...counts].filter(([, n]) => n > 0);
  // That nothing was done is said, where nothing else is.
  return [...(said.length > 0 ? said : [...counts].slice(0, 1)).map(fact), ...(more === "" ? [] : [more])];
}

const fact = ([words, n]: readonly [string, number]): string => {
  const one = n === 1 && / ?\b(tabs|windows|groups|devices|rows)\b/.test(words) ? words.replace(/s\b/, "") : words;
  return `${n} ${one}`;
};

/** What changed beside what was asked: closedWindowIds becomes "windows closed". */
function besides(effects: Json): [string, number][] {
  return Object.entries(effects).flatMap(([key, value]): [string, number][] => {
    const form = /^([a-z]+)(Window|Group|Tab)Ids?$/.exec(key);
    if (form === null) {
      return [];
    }
    const [, verb, noun] = form;
    return [[`${noun?.toLowerCase()}s ${verb}`, Array.isArray(value) ? value.length : 1]];
  });
}

function problemsOf(outcome: Json): Problem[] {
  const error = isObject(outcome.error) ? outcome.error : outcome;
  const code = text(error.code);
  if (code === "") {
    return [];
  }
  const { title, advice } = errorText(code);
  const lines = Array.isArray(error.problems) ? error.problems.filter((each) => typeof each === "string") : [];
  return [{ title, message: [text(error.message), ...lines].join("\n"), advice }];
}

/**
 * What became of each target. The agent leaves out items that went well and say no more: where it has listed everything, a
 * target that is not in the list is one of those.
 */
function rowsOf(targets: readonly string[], outcomes: readonly Json[], cut: boolean, known: Known): Row[] {
  const failed = outcomes.filter((each) => text(each.code) !== "" || isObject(each.error));
  if (outcomes.length === 0 || failed.length === outcomes.length) {
    return [...new Set(targets)].map((id) => row(id, { status: outcomes.length === 0 ? "" : "not_run" }, known));
  }
  const items = new Map(outcomes.flatMap((each) => objects(each.items)).map((item) => [text(item.id), item]));
  const failedOn = new Set(failed.map((each) => text(each.deviceId)));
  const rest: (id: string) => Json = (id) => {
    const status = failedOn.has(parseId(id)?.device ?? "-") ? "not_run" : cut ? "not stated" : "ok";
    return { status };
  };
  const ids = [...new Set([...targets, ...items.keys()])];
  return ids.map((id) => row(id, items.get(id) ?? rest(id), known));
}

function row(id: string, item: Json, known: Known): Row {
  const status = text(item.status);
  const thing = known.things.get(id) ?? { title: "", url: "" };
  const words = status === "" ? "" : status === "not_run" ? "did not run" : statusText(status);
  return {
    id,
    ...thing,
    status: words,
    ok: status === "ok" || status === "replaced",
    detail: text(item.detail),
    newId: text(item.newId),
  };
}
