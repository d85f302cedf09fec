/** Where a case is played: acts of a person, of pages and of the browser itself, and calls of ours. */
import { create, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type ActionSchema, ErrorCode, ResultSchema } from "@throwbar/es/pb/command";
import { type CommandRequest, CommandRequestSchema, type Outcome } from "@throwbar/es/pb/device";
import { type ItemOutcome, ItemStatus, type SavedTab, SavedTabSchema } from "@throwbar/es/pb/state";
import { type BrowserChange, BrowserError, type BrowserPort } from "../../src/platform/port.js";
import { compositeId, type Identity } from "../../src/state/identity.js";
import { Names, type View } from "./names.js";

export type Kind = NonNullable<MessageInitShape<typeof ActionSchema>["kind"]>;

/** Calls that can be made to hang in the worker. */
export type Hanging = "create" | "remove" | "update" | "move" | "group" | "ungroup";

/** A browser with the extension: the fake, or a real Chromium. It has one window with one tab, the extension's own page. */
export interface World {
  readonly browser: BrowserPort;
  /** How long a call may take that has not asked the person anything, in milliseconds, before it is called pending. */
  readonly momentMs: number;
  /** Time to live of a command that is to run out of it, in milliseconds. */
  readonly shortMs: number;
  identity(): Promise<Identity>;
  /** Opens a tab behind the others, and waits until its page is loaded. */
  openTab(url: string, windowId?: number): Promise<number>;
  /** Opens a window without giving it the focus, and waits until its page is loaded. Returns the tab's id. */
  openWindow(url: string, kind: "normal" | "popup"): Promise<number>;
  /** A person clicks into the tab's page. The tab in front stays there. */
  click(id: number): Promise<void>;
  /** Answers what pages ask the person before they are left. */
  answer(how: "leave" | "stay"): Promise<void>;
  /** Resolves once so many pages ask, one if it is left out; at once if they do. */
  asked(pages?: number): Promise<void>;
  /** The browser puts a tab to sleep. Returns the id that it has then. */
  sleep(id: number): Promise<number>;
  /** A person closes a tab, and says yes to whatever its page asks. */
  close(id: number): Promise<void>;
  /** A person closes a window with all its tabs. */
  closeWindow(windowId: number): Promise<void>;
  /** A person folds a group. */
  collapse(groupId: number): Promise<void>;
  /** The next calls find a tab that a person drags. Only in the fake. */
  drag(calls: number): void;
  /** Waits until pages are loaded and nothing changes any more. */
  settled(): Promise<void>;
  /** What the port has told since this was asked last. */
  changes(): Promise<BrowserChange[]>;
  /** Hands a command to the worker, as the link does. */
  deliver(request: CommandRequest): Promise<Outcome>;
  /** Makes the worker's next calls of this kind hang before they do anything, or after they have done all. */
  hang(method: Hanging, when: "before" | "after"): Promise<void>;
  /** Resolves once a call hangs. */
  hanging(): Promise<void>;
  /** The browser stops the worker. */
  stopWorker(): Promise<void>;
}

/** An id that no tab, window or group has. */
export const unknown = 2_147_483_000;

export type Ended = "done" | "pending" | BrowserError["kind"];

export interface OpenOptions {
  readonly in?: number;
}

export class Stage {
  readonly world: World;
  readonly names = new Names();

  constructor(world: World) {
    this.world = world;
  }

  get browser(): BrowserPort {
    return this.world.browser;
  }

  /** Has to be called before the case is run: names start with what is there. */
  async ready(): Promise<void> {
    await this.view();
    await this.world.changes();
  }

  /** Opens http://NAME.test/ behind the other tabs; the name may have a path. Returns the tab's id. */
  async open(name: string, { in: windowId }: OpenOptions = {}): Promise<number> {
    return this.#seen(await this.world.openTab(address(name), windowId));
  }

  /** Opens a page that asks before it is left, and on which a person has clicked. */
  async openGuarded(name: string, options: OpenOptions = {}): Promise<number> {
    const id = await this.open(`${name}/guard`, options);
    await this.world.click(id);
    return id;
  }

  /** Opens a window, which does not get the focus. Returns the id of its tab. */
  async openWindow(name: string, kind: "normal" | "popup" = "normal"): Promise<number> {
    return this.#seen(await this.world.openWindow(address(name), kind));
  }

  async sleep(id: number): Promise<number> {
    return this.#seen(await this.world.sleep(id));
  }

  async windowOf(id: number): Promise<number> {
    const tab = await this.browser.tabs.get(id);
    if (tab === undefined) {
      throw new Error(`no tab ${id}`);
    }
    return tab.windowId;
  }

  /** The window that is there from the start. */
  async home(): Promise<number> {
    const tabs = await this.browser.tabs.list();
    const home = tabs.find((tab) => this.names.tabText(tab).startsWith("home"));
    return home?.windowId ?? 0;
  }

  async #seen(id: number): Promise<number> {
    const tab = await this.browser.tabs.get(id);
    if (tab !== undefined) {
      this.names.seeTab(tab);
    }
    return id;
  }

  /** What the browser looks like once nothing changes any more. */
  async view(): Promise<View> {
    await this.world.settled();
    return this.names.view(this.browser);
  }

  /** The names of all tabs, in the order of their windows and places. */
  async tabNames(): Promise<string[]> {
    const view = await this.view();
    return Object.entries(view).flatMap(([window, tabs]) =>
      window === "groups" ? [] : tabs.map((text) => text.split(" ")[0] ?? ""),
    );
  }

  /** How a call ended: "done", how the browser refused it, or "pending" where a page asks the person first. */
  ended(call: Promise<unknown>): Promise<Ended> {
    return this.#endedBy(call, this.world.asked());
  }

  /** The same where no page needs to ask: "pending" if it has not ended soon. */
  endedSoon(call: Promise<unknown>): Promise<Ended> {
    return this.#endedBy(call, Promise.resolve());
  }

  #endedBy(call: Promise<unknown>, asked: Promise<void>): Promise<Ended> {
    const settled = call.then(
      () => "done" as const,
      (error: unknown) => (error instanceof BrowserError ? error.kind : Promise.reject(error)),
    );
    // A browser that is busy says what there is late, too.
    const stillOpen = asked.then(() => this.patience()).then(() => this.world.settled());
    return Promise.race([settled, stillOpen.then(() => "pending" as const)]);
  }

  /** Lets the time pass in which the browser does not take a second call for impatience. */
  patience(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, this.world.momentMs));
  }

  /** How the browser refused a call, and the id that it named. */
  async refusal(call: Promise<unknown>): Promise<readonly [string, number | undefined]> {
    try {
      await call;
    } catch (error) {
      if (error instanceof BrowserError) {
        return [error.kind, error.missingId];
      }
      throw error;
    }
    return ["done", undefined];
  }

  /** What the port told since the last time, by names, in the order in which it came. */
  async changes(): Promise<string[]> {
    await this.view();
    const all = (await this.world.changes()).map((change) => this.#changeText(change));
    // Whether a tab's title and its end of loading are told in one or two is the browser's own affair.
    return all.filter((text, at) => !(text.startsWith("tab ") && text === all[at - 1]));
  }

  #changeText(change: BrowserChange): string {
    switch (change.kind) {
      case "tab":
        return `tab ${this.names.tab(change.id)}${change.loading ? " loading" : ""}`;
      case "placed":
        return `placed ${this.names.tab(change.id)} at ${change.index} of ${this.names.window(change.windowId)}`;
      case "left":
        return `left ${this.names.tab(change.id)}`;
      case "shown":
        return `shown ${this.names.tab(change.id)}`;
      case "window":
        return `window ${this.names.window(change.id)}`;
      case "removed":
        return `removed ${this.names.tab(change.id)}`;
      case "replaced":
        return `replaced ${this.names.tab(change.id)} by ${this.names.tab(change.by)}`;
      default:
        return change.kind;
    }
  }
}

export interface CommandOptions {
  /** The id under which the server delivers it; a new one if left out. */
  readonly id?: string;
  /** Gives it only so much time that a page that asks outlasts it. */
  readonly short?: boolean;
  readonly saved?: readonly MessageInitShape<typeof SavedTabSchema>[];
}

export class CommandStage extends Stage {
  /** Of this start of the browser; read before the case is run. */
  #identity: Identity = { device: "", boot: "" };

  override async ready(): Promise<void> {
    this.#identity = await this.world.identity();
    await super.ready();
  }

  tabId(native: number): string {
    return compositeId(this.#identity, "tab", native);
  }

  windowId(native: number): string {
    return compositeId(this.#identity, "window", native);
  }

  groupId(native: number): string {
    return compositeId(this.#identity, "group", native);
  }

  /** The id of a tab that an earlier start of the browser had. */
  staleId(native: number): string {
    return compositeId({ ...this.#identity, boot: "zzzz" }, "tab", native);
  }

  /** Runs a command and says in short how it ended: the name of the error, or the result by names. */
  async command(kind: Kind, options: CommandOptions = {}): Promise<unknown> {
    return this.told(await this.deliver(kind, options));
  }

  deliver(kind: Kind, { id = crypto.randomUUID(), short = false, saved = [] }: CommandOptions = {}): Promise<Outcome> {
    return this.world.deliver(
      create(CommandRequestSchema, {
        commandId: id,
        action: { kind },
        timeLeft: durationFromMs(short ? this.world.shortMs : 60_000),
        attempt: 1,
        saved: saved.map((tab): SavedTab => create(SavedTabSchema, tab)),
      }),
    );
  }

  /** An outcome in short. Reads the browser first, so that what is new has a name. */
  async told({ outcome }: Outcome): Promise<unknown> {
    await this.view();
    if (outcome.case !== "result") {
      return outcome.case === "error" ? ErrorCode[outcome.value.code] : "no outcome";
    }
    const { value } = outcome.value.kind;
    const short = toJson(ResultSchema, outcome.value, { alwaysEmitImplicit: true }) as Record<string, object>;
    const items = value !== undefined && "items" in value ? { items: value.items.map((each) => this.#item(each)) } : {};
    return this.names.all({ ...Object.values(short)[0], ...items });
  }

  /** For example "a OK", or "a OK as b" where it has another id now. What an item says in words is not compared. */
  #item({ id, status, newId }: ItemOutcome): string {
    const now = newId === "" ? "" : ` as ${this.names.text(newId)}`;
    return `${this.names.text(id)} ${ItemStatus[status]}${now}`;
  }
}

/** Where the name of a page leads: "a" to http://a.test/, "a/x" to http://a.test/x. */
export function address(name: string): string {
  const [host, ...path] = name.split("/");
  return `http://${host}.test/${path.join("/")}`;
}
