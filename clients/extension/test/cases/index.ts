/** The whole table, in the order of the report. */
import { closing } from "./browser/closing.js";
import type { BrowserCase, CommandCase } from "./case.js";
import { arrangeCases } from "./commands/arrange.js";
import { closeCases } from "./commands/close.js";
import { openCases } from "./commands/open.js";
import { savedCases } from "./commands/saved.js";

export const browserCases: readonly BrowserCase[] = [...closing];

export const commandCases: readonly CommandCase[] = [...openCases, ...arrangeCases, ...closeCases, ...savedCases];
