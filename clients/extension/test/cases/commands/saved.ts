/** Cases of commands that save and restore tabs. */
import type { CommandCase } from "../case.js";

export const savedCases: readonly CommandCase[] = [];
