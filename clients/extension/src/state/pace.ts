/** How often one tab is told of: a page may change its title with every frame. */

/** A tab that goes on changing is told of after this, then after twice as long, and so on. */
const firstMs = 250;
const mostMs = 2000;

export class Pace {
  readonly #told = new Map<number, { readonly at: number; readonly gap: number }>();

  /** When a change of the tab may be told. */
  due(id: number, now: number): number {
    const last = this.#told.get(id);
    return last === undefined ? now : Math.max(now, last.at + last.gap);
  }

  told(ids: Iterable<number>, now: number): void {
    for (const [id, { at, gap }] of this.#told) {
      if (now - at > 2 * gap) {
        this.#told.delete(id); // it has calmed down
      }
    }
    for (const id of ids) {
      const last = this.#told.get(id);
      this.#told.set(id, { at: now, gap: last === undefined ? firstMs : Math.min(mostMs, 2 * last.gap) });
    }
  }
}
