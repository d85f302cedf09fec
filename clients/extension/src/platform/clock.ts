import type { Clock } from "./port.js";

export const systemClock: Clock = { monotonic: () => performance.now(), wall: () => Date.now() };
