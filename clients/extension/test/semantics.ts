/**
 * What a browser does with its tabs where that is not what one would think. The fake is held to it by a unit test, Chromium by an
 * end-to-end test: so the fake does what Chromium does.
 */
export interface SemanticsTab {
  readonly id: number;
  readonly windowId: number;
  readonly url: string;
  readonly pinned: boolean;
  readonly grouped: boolean;
  readonly discarded: boolean;
}

/** How a call ended; "pending" if it had not after a moment. */
export type Ended = "done" | "refused" | "pending";

export interface Driver {
  /** Opens a tab with a page of this name; in a new window if asked. */
  open(name: string, where?: "here" | "window"): Promise<number>;
  /** Opens a page that asks before it is left, and on which a person has done something. */
  openGuarded(name: string): Promise<number>;
  tabs(): Promise<SemanticsTab[]>;
  remove(ids: readonly number[]): Promise<Ended>;
  group(ids: readonly number[], windowId: number): Promise<Ended>;
  pin(id: number): Promise<Ended>;
  moveTo(id: number, index: number): Promise<number>;
  discard(id: number): Promise<number>;
}

export interface Scenario {
  readonly name: string;
  run(driver: Driver): Promise<unknown>;
  readonly expected: unknown;
}

const unknown = 2_147_483_000;

async function namesOf(driver: Driver, ids: readonly number[]): Promise<boolean[]> {
  const open = new Set((await driver.tabs()).map(({ id }) => id));
  return ids.map((id) => open.has(id));
}

async function tab(driver: Driver, id: number): Promise<SemanticsTab | undefined> {
  return (await driver.tabs()).find((each) => each.id === id);
}

export const scenarios: readonly Scenario[] = [
  {
    name: "closing stops at the first tab that is not known, and those before it are closed",
    run: async (driver) => {
      const [a, b] = [await driver.open("a"), await driver.open("b")];
      const ended = await driver.remove([a, unknown, b]);
      return [ended, await namesOf(driver, [a, b])];
    },
    expected: ["refused", [false, true]],
  },
  {
    name: "closing a tab twice in one call is refused, and the tab is closed",
    run: async (driver) => {
      const a = await driver.open("a");
      const ended = await driver.remove([a, a]);
      return [ended, await namesOf(driver, [a])];
    },
    expected: ["refused", [false]],
  },
  {
    name: "a page that asks keeps the call open while the others close, and a second call closes it without an answer",
    run: async (driver) => {
      const [guarded, plain] = [await driver.openGuarded("g"), await driver.open("p")];
      const first = await driver.remove([guarded, plain]);
      const between = await namesOf(driver, [guarded, plain]);
      const second = await driver.remove([guarded]);
      return [first, between, second, await namesOf(driver, [guarded])];
    },
    expected: ["pending", [true, false], "done", [false]],
  },
  {
    name: "grouping a pinned tab unpins it",
    run: async (driver) => {
      const a = await driver.open("a");
      await driver.pin(a);
      const { windowId = 0 } = (await tab(driver, a)) ?? {};
      const ended = await driver.group([a], windowId);
      const now = await tab(driver, a);
      return [ended, now?.pinned, now?.grouped];
    },
    expected: ["done", false, true],
  },
  {
    name: "pinning a grouped tab takes it out of the group",
    run: async (driver) => {
      const a = await driver.open("a");
      const { windowId = 0 } = (await tab(driver, a)) ?? {};
      await driver.group([a], windowId);
      await driver.pin(a);
      const now = await tab(driver, a);
      return [now?.pinned, now?.grouped];
    },
    expected: [true, false],
  },
  {
    name: "grouping with a tab that is not known groups none",
    run: async (driver) => {
      const a = await driver.open("a");
      const { windowId = 0 } = (await tab(driver, a)) ?? {};
      const ended = await driver.group([a, unknown], windowId);
      return [ended, (await tab(driver, a))?.grouped];
    },
    expected: ["refused", false],
  },
  {
    name: "grouping tabs of another window moves them, and closes a window that is empty then",
    run: async (driver) => {
      const [a, b] = [await driver.open("a"), await driver.open("b", "window")];
      const { windowId = 0 } = (await tab(driver, a)) ?? {};
      const before = (await tab(driver, b))?.windowId;
      const ended = await driver.group([a, b], windowId);
      const all = await driver.tabs();
      return [ended, (await tab(driver, b))?.windowId === windowId, all.some((each) => each.windowId === before)];
    },
    expected: ["done", true, false],
  },
  {
    name: "a tab is not moved in front of the pinned ones",
    run: async (driver) => {
      const [pinned, a] = [await driver.open("pinned"), await driver.open("a")];
      await driver.pin(pinned);
      return driver.moveTo(a, 0);
    },
    expected: 1,
  },
  {
    name: "a tab that is put to sleep has another id",
    run: async (driver) => {
      const a = await driver.open("a");
      await driver.open("front");
      const now = await driver.discard(a);
      return [now === a, await namesOf(driver, [a, now]), (await tab(driver, now))?.discarded];
    },
    expected: [false, [false, true], true],
  },
];
