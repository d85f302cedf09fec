/** Whatever is lost, repeated or stopped: in the end the server knows what the browser has. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { compositeId } from "../src/state/identity.js";
import { Random } from "./fake/random.js";
import { Restless } from "./fake/restless.js";
import { Rig } from "./fake/rig.js";

/** More by THROWBAR_STATE_SEEDS. */
const seeds = Number(process.env.THROWBAR_STATE_SEEDS ?? 40);
const first = Number(process.env.THROWBAR_STATE_SEED ?? 1);

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Both sides in the same words. */
function known({ view }: Rig): unknown {
  return {
    tabs: [...view.order]
      .flatMap(([windowId, ids]) =>
        ids.map((id, index) => {
          const tab = view.tabs.get(id);
          return [
            windowId,
            index,
            id,
            tab?.url,
            tab?.title,
            tab?.groupId,
            tab?.active,
            tab?.muted,
            tab?.discarded,
          ].join(" ");
        }),
      )
      .sort(),
    rows: view.tabs.size,
    windows: [...view.windows.values()].map(({ windowId, focused }) => `${windowId} ${focused}`).sort(),
    groups: [...view.groups.values()].map(({ groupId, title }) => `${groupId} ${title}`).sort(),
  };
}

function truth({ strip, boot }: Rig): unknown {
  const id = (kind: "tab" | "window" | "group", native: number) => compositeId({ device: "dev1", boot }, kind, native);
  return {
    tabs: strip
      .all()
      .map((tab) => {
        const groupId = tab.groupId === undefined ? "" : id("group", tab.groupId);
        const { index, title, active, muted, discarded } = tab;
        const url = tab.pendingUrl || tab.url;
        return [
          id("window", tab.windowId),
          index,
          id("tab", tab.id),
          url,
          title,
          groupId,
          active,
          muted,
          discarded,
        ].join(" ");
      })
      .sort(),
    rows: strip.all().length,
    windows: strip.windowList.map((window) => `${id("window", window.id)} ${window.focused}`).sort(),
    groups: strip.groupList.map((group) => `${id("group", group.id)} ${group.title}`).sort(),
  };
}

function trouble(rig: Rig, random: Random): void {
  random.run(
    [6, () => {}],
    [3, () => rig.startWorker()],
    [2, () => rig.startDocument()],
    [2, () => rig.breakLink()],
    [1, () => rig.server.reportFailures.push(random.below(2) === 0 ? "lost request" : "lost answer")],
    [1, () => (rig.strip.busy = random.below(3))],
  );
}

async function settle(rig: Rig): Promise<void> {
  for (let n = 0; n < 60; n++) {
    rig.strip.deliver();
    await vi.advanceTimersByTimeAsync(100);
    rig.pump();
  }
}

async function start(rig: Rig): Promise<void> {
  rig.strip.openWindow();
  rig.startDocument();
  rig.startWorker();
  await settle(rig);
}

/** Every pair that was told is one that the browser has made. */
function checkReplaced(rig: Rig): number {
  const pairs = rig.frames.flatMap((frame) => (frame.case === "delta" ? frame.value.replaced : []));
  const native = (id: string) => Number(id.slice(id.lastIndexOf("-") + 1));
  for (const { oldTabId, newTabId } of pairs) {
    let id: number | undefined = native(oldTabId);
    while (id !== undefined && id !== native(newTabId)) {
      id = rig.strip.replacedBy.get(id);
    }
    expect(id).toBe(native(newTabId));
  }
  for (const frame of rig.frames) {
    if (frame.case === "delta") {
      const { removed, replaced } = frame.value;
      expect(replaced.filter(({ oldTabId }) => removed.includes(oldTabId))).toEqual([]);
    }
  }
  return pairs.length;
}

async function live(seed: number): Promise<Rig> {
  const random = new Random(seed);
  const strip = new Restless();
  const rig = new Rig(strip);
  await start(rig);
  expect(known(rig)).toEqual(truth(rig));
  rig.fate = ({ case: kind }) => {
    if (random.below(20) > 0) {
      return random.below(15) === 0 ? 2 : 1;
    }
    if (kind === "snapshot") {
      rig.breakLink(); // a server waits for what it has asked for as long as the link stands
    }
    return 0;
  };
  // The browser goes on while it is asked, and what it says of that comes at some time.
  strip.meanwhile = async () => {
    if (random.below(6) === 0) {
      strip.act(random);
    }
    strip.deliver(random.below(4));
    await Promise.resolve();
  };
  for (let round = 0; round < 30; round++) {
    for (let n = random.below(6); n > 0; n--) {
      strip.act(random);
      strip.deliver(random.below(4));
    }
    trouble(rig, random);
    await vi.advanceTimersByTimeAsync(random.below(400));
    rig.pump();
  }
  strip.meanwhile = () => {};
  strip.busy = 0;
  rig.fate = () => 1;
  await settle(rig);
  // A frame that was lost at the very end is missed with the next one.
  strip.change(strip.all()[0]?.id ?? 0, { title: "the end" });
  await settle(rig);
  return rig;
}

test(
  "the server's view comes to what the browser has",
  async () => {
    let replaced = 0;
    for (let seed = first; seed < first + seeds; seed++) {
      const rig = await live(seed);
      expect(known(rig), `seed ${seed}`).toEqual(truth(rig));
      replaced += checkReplaced(rig);
    }
    expect(replaced).toBeGreaterThan(seeds / 2);
  },
  60_000 + seeds * 2000,
);
