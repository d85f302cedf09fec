import { vi } from "vitest";

/** Waits until a look does not throw, and gives what it found. The bound is for what hangs: a machine that is busy needs its time. */
export const until = <T>(look: () => T | Promise<T>): Promise<T> => vi.waitFor(look, { timeout: 20_000 });
