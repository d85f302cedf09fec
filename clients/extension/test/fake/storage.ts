import type { StorageArea, StoragePort } from "../../src/platform/port.js";

/** Keeps what is JSON, as the browser does. */
export class FakeArea implements StorageArea {
  readonly items = new Map<string, string>();
  writes = 0;
  /** Makes the next writes fail, as a full storage does. */
  full = false;
  readonly listeners = new Set<(keys: readonly string[]) => void>();
  /** How many items there is room for. */
  most = Number.POSITIVE_INFINITY;

  async get(keys: readonly string[]): Promise<Record<string, unknown>> {
    const found = keys.flatMap((key) => {
      const text = this.items.get(key);
      return text === undefined ? [] : [[key, JSON.parse(text)] as const];
    });
    return Object.fromEntries(found);
  }

  all(): Promise<Record<string, unknown>> {
    return this.get([...this.items.keys()]);
  }

  async set(items: Record<string, unknown>): Promise<void> {
    const added = Object.keys(items).filter((key) => !this.items.has(key)).length;
    if (this.full || this.items.size + added > this.most) {
      throw new Error("QUOTA_BYTES quota exceeded");
    }
    this.writes++;
    for (const [key, value] of Object.entries(items)) {
      this.items.set(key, JSON.stringify(value));
    }
    this.#tell(Object.keys(items));
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      this.items.delete(key);
    }
    this.#tell(keys);
  }

  #tell(keys: readonly string[]): void {
    for (const listener of [...this.listeners]) {
      listener(keys);
    }
  }
}

export class FakeStorage implements StoragePort {
  readonly session = new FakeArea();
  readonly local = new FakeArea();

  onLocalChange(listener: (keys: readonly string[]) => void): void {
    this.local.listeners.add(listener);
  }
}
