/** Cases of commands that arrange tabs: move, group, pin, mute, activate. */
import type { CommandCase } from "../case.js";

export const arrangeCases: readonly CommandCase[] = [];
