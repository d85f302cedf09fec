/** The fake as a place for cases. */
import type { CommandRequest, Outcome } from "@throwbar/es/pb/device";
import { Runner } from "../../src/link/runner.js";
import { systemClock } from "../../src/platform/clock.js";
import type { BrowserChange } from "../../src/platform/port.js";
import type { Identity } from "../../src/state/identity.js";
import { FakeBrowser } from "../fake/browser.js";
import { FakeClock } from "../fake/clock.js";
import { FakeExtension, pairing } from "../fake/extension.js";
import { homeUrl } from "./names.js";
import type { Hanging, World } from "./stage.js";

export class FakeWorld implements World {
  readonly browser = new FakeBrowser(homeUrl);
  readonly momentMs = 150;
  readonly shortMs = 600;
  /** Its time passes as time does, as it does in Chromium. */
  readonly #extension = new FakeExtension(this.browser, true, Object.assign(new FakeClock(), systemClock));
  readonly #link = this.#extension.hub.part();
  #changes: BrowserChange[] = [];
  #hangs: Promise<void> = Promise.resolve();

  constructor() {
    // Otherwise the worker makes one when it first needs one, and cases name tabs before that.
    this.#extension.storage.session.items.set("boot", JSON.stringify("boot"));
    this.browser.patienceMs = 100; // shorter than a moment
    this.browser.watch((change) => this.#changes.push(change));
  }

  async identity(): Promise<Identity> {
    for (;;) {
      const { boot } = await this.#extension.storage.session.get(["boot"]);
      if (typeof boot === "string") {
        return { device: pairing.deviceId, boot };
      }
      await this.settled(); // the worker has just started
    }
  }

  async openTab(url: string, windowId?: number): Promise<number> {
    return this.browser.addTab(url, windowId).id;
  }

  async openWindow(url: string, kind: "normal" | "popup"): Promise<number> {
    return this.browser.openWindow(url, kind).id;
  }

  async click(id: number): Promise<void> {
    this.browser.click(id);
  }

  async answer(how: "leave" | "stay"): Promise<void> {
    this.browser.answer(how);
  }

  asked(): Promise<void> {
    return this.browser.asked();
  }

  async sleep(id: number): Promise<number> {
    return this.browser.discard(id);
  }

  async close(id: number): Promise<void> {
    this.browser.vanish(id);
  }

  async closeWindow(windowId: number): Promise<void> {
    this.browser.closeWindow(windowId);
  }

  async collapse(groupId: number): Promise<void> {
    this.browser.collapse(groupId);
  }

  drag(calls: number): void {
    this.browser.busy = calls;
  }

  /** Everything in the fake is done within a few turns. */
  settled(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, 0));
  }

  async changes(): Promise<BrowserChange[]> {
    const changes = this.#changes;
    this.#changes = [];
    return changes;
  }

  deliver(request: CommandRequest): Promise<Outcome> {
    return new Promise((ended) => {
      const runner = new Runner(this.#link, this.#extension.clock, { acknowledged: () => {}, ended });
      runner.run(request);
    });
  }

  async hang(method: Hanging, when: "before" | "after"): Promise<void> {
    this.#hangs = this.browser.hang(method, when);
  }

  hanging(): Promise<void> {
    return this.#hangs;
  }

  async stopWorker(): Promise<void> {
    this.#extension.killWorker();
  }
}
