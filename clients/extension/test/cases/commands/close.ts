/** Cases of commands that close tabs. */
import type { CommandCase } from "../case.js";

export const closeCases: readonly CommandCase[] = [];
