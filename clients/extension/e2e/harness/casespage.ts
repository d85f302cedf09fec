/**
 * Runs inside the extension's page in the tests of the case table, and is never part of the extension: the real adapter of the
 * browser, and the real way in which commands are handed to the worker.
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { CommandRequestSchema, OutcomeSchema } from "@throwbar/es/pb/device";
import { Runner } from "../../src/link/runner.js";
import { chromeMessages } from "../../src/platform/chrome/messages.js";
import { chromeBrowser } from "../../src/platform/chrome/worker.js";
import { systemClock } from "../../src/platform/clock.js";
import { type BrowserChange, BrowserError } from "../../src/platform/port.js";

const browser = chromeBrowser();
let changes: BrowserChange[] = [];
browser.onChange((change) => changes.push(change));

/** What a call of the port came to, as JSON can carry it. */
export type Answer =
  | { readonly value: unknown }
  | { readonly kind: BrowserError["kind"]; readonly message: string; readonly missingId: number | undefined };

async function call(part: "tabs" | "windows" | "groups", method: string, args: readonly unknown[]): Promise<Answer> {
  const methods = browser[part] as unknown as Record<string, (...all: unknown[]) => Promise<unknown>>;
  try {
    return { value: await methods[method]?.(...args) };
  } catch (error) {
    if (error instanceof BrowserError) {
      const { kind, message, missingId } = error;
      return { kind, message, missingId };
    }
    throw error;
  }
}

function takeChanges(): BrowserChange[] {
  const taken = changes;
  changes = [];
  return taken;
}

function deliver(request: string): Promise<string> {
  return new Promise((resolve) => {
    const runner = new Runner(chromeMessages, systemClock, {
      acknowledged: () => {},
      ended: (outcome) => resolve(base64Encode(toBinary(OutcomeSchema, outcome))),
    });
    runner.run(fromBinary(CommandRequestSchema, base64Decode(request)));
  });
}

async function loaded(id: number): Promise<number> {
  await new Promise<void>((resolve) => {
    const look = async () => {
      if ((await chrome.tabs.get(id)).status === "complete") {
        chrome.tabs.onUpdated.removeListener(listener);
        resolve();
      }
    };
    const listener = (updated: number) => {
      if (updated === id) {
        void look();
      }
    };
    chrome.tabs.onUpdated.addListener(listener);
    void look();
  });
  return id;
}

async function openTab(url: string, windowId: number): Promise<number> {
  const tab = await chrome.tabs.create({ url, windowId, active: false });
  return loaded(tab.id ?? -1);
}

async function openWindow(url: string, type: "normal" | "popup"): Promise<number> {
  const window = await chrome.windows.create({ url, type, focused: false });
  return loaded(window?.tabs?.[0]?.id ?? -1);
}

/**
 * How long nothing may change before the browser counts as settled, and how long a page may load meanwhile: so long, or so many times
 * what it takes the browser to say what there is. On a busy machine all else takes longer, too.
 */
const quietMs = 30;
const quietLooks = 6;
const loadMs = 2500;
const loadLooks = 800;

/**
 * Waits until everything that the browser's state is made of has stayed the same for a while and no page loads any more. A tab
 * whose page asks before it is left, or asked and was not left, counts as loading for good: such ones are not waited for long.
 */
async function settled(asking: boolean): Promise<void> {
  let before = "";
  const started = performance.now();
  for (;;) {
    const looked = performance.now();
    const tabs = await chrome.tabs.query({});
    const others = await Promise.all([chrome.windows.getAll(), chrome.tabGroups.query({})]);
    const now = JSON.stringify([tabs.map(({ lastAccessed: _, ...tab }) => tab), ...others]);
    const loading = tabs.some(({ status }) => status === "loading");
    const tookMs = performance.now() - looked;
    const patienceMs = Math.max(loadMs, loadLooks * tookMs);
    if (now === before && (asking || !loading || performance.now() - started > patienceMs)) {
      return;
    }
    before = now;
    await new Promise((resolve) => setTimeout(resolve, Math.max(quietMs, quietLooks * tookMs)));
  }
}

/** Closes everything but this page, and makes that what a case starts with. Returns its window. */
async function clean(): Promise<number> {
  const home = (await chrome.tabs.getCurrent())?.id ?? 0;
  for (;;) {
    const left = (await chrome.tabs.query({})).filter(({ id }) => id !== home);
    if (left.length === 0) {
      break;
    }
    for (const { id = 0, discarded, url } of left) {
      // Asleep, a page asks nobody.
      const asks = !discarded && (url ?? "").includes("/guard");
      const tab = asks ? await chrome.tabs.discard(id).catch(() => undefined) : undefined;
      void chrome.tabs.remove(tab?.id ?? id).catch(() => {});
    }
    await new Promise((resolve) => setTimeout(resolve, quietMs));
  }
  await chrome.tabs.update(home, { active: true, pinned: false, muted: false });
  const { groupId, windowId } = await chrome.tabs.get(home);
  if (groupId >= 0) {
    await chrome.tabs.ungroup(home);
  }
  return windowId;
}

const cases = { call, takeChanges, deliver, openTab, openWindow, settled, clean };
export type CasesPage = typeof cases;
Object.assign(globalThis, { cases });
