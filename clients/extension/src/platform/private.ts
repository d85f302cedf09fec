/**
 * Keeps private windows from everybody behind it: they are not listed, and their tabs cannot be touched by an id that somebody
 * guesses or still has. All of the extension sees the browser through this.
 */
import { BrowserError, type BrowserPort, type GroupInfo } from "./port.js";

const noTab = (id: number) => new BrowserError("noTab", `No tab with id: ${id}.`, id);
const noWindow = (id: number) => new BrowserError("noWindow", `No window with id: ${id}.`, id);
const noGroup = (id: number) => new BrowserError("noGroup", `No group with id: ${id}.`, id);

const seen = <T extends { readonly private: boolean }>(rows: T[], openly: boolean): T[] =>
  openly ? rows : rows.filter((row) => !row.private);

/** Openly says whether there is nothing to keep: no private window is shown to the extension, or the person has allowed it. */
export function discreet(browser: BrowserPort, openly: () => Promise<boolean>): BrowserPort {
  const { tabs, windows, groups } = browser;
  const listWindows = async () => seen(await windows.list(), await openly());
  const listGroups = async (): Promise<GroupInfo[]> => {
    const all = await groups.list();
    if (await openly()) {
      return all;
    }
    const hidden = new Set((await windows.list()).flatMap((window) => (window.private ? window.id : [])));
    return all.filter(({ windowId }) => !hidden.has(windowId));
  };
  const tabsMay = async (ids: readonly number[]) => {
    if (await openly()) {
      return;
    }
    for (const [at, tab] of (await Promise.all(ids.map((id) => tabs.get(id)))).entries()) {
      if (tab?.private) {
        throw noTab(ids[at] ?? tab.id);
      }
    }
  };
  const windowMay = async (id: number | undefined) => {
    if (
      id !== undefined &&
      !(await openly()) &&
      (await windows.list()).some((each) => each.id === id && each.private)
    ) {
      throw noWindow(id);
    }
  };
  const groupMay = async (id: number) => {
    if (!(await openly()) && !(await listGroups()).some((each) => each.id === id)) {
      throw noGroup(id);
    }
  };
  /** A call that is made once a check has let it pass. */
  const after =
    <A extends unknown[], R>(check: (...args: A) => Promise<void>, run: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await check(...args);
      return run(...args);
    };
  return {
    tabs: {
      list: async (windowId) => seen(await tabs.list(windowId), await openly()),
      get: async (id) => {
        const tab = await tabs.get(id);
        return tab?.private && !(await openly()) ? undefined : tab;
      },
      create: after(
        (tab) => windowMay(tab.windowId),
        (...args) => tabs.create(...args),
      ),
      update: after(
        (...[id]) => tabsMay([id]),
        (...args) => tabs.update(...args),
      ),
      remove: after(tabsMay, (...args) => tabs.remove(...args)),
      move: after(
        async (id, to) => {
          await tabsMay([id]);
          await windowMay(to.windowId);
        },
        (...args) => tabs.move(...args),
      ),
      reload: after(
        (...[id]) => tabsMay([id]),
        (...args) => tabs.reload(...args),
      ),
      group: after(
        async (ids, into) => {
          await tabsMay(ids);
          await ("groupId" in into ? groupMay(into.groupId) : windowMay(into.windowId));
        },
        (...args) => tabs.group(...args),
      ),
      ungroup: after(tabsMay, (...args) => tabs.ungroup(...args)),
    },
    windows: {
      list: listWindows,
      lastFocused: async () => {
        const id = await windows.lastFocused();
        return (await listWindows()).find((each) => each.id === id)?.id;
      },
      focus: after(windowMay as (id: number) => Promise<void>, (id) => windows.focus(id)),
      create: (url) => windows.create(url),
    },
    groups: {
      list: listGroups,
      update: after(
        (...[id]) => groupMay(id),
        (...args) => groups.update(...args),
      ),
    },
    onChange: (listener) => browser.onChange(listener),
    stayAwake: () => browser.stayAwake(),
    seesPrivate: () => browser.seesPrivate(),
  };
}
