/** The whole table, in the order of the report. */
import { addresses } from "./browser/addresses.js";
import { asking } from "./browser/asking.js";
import { closing } from "./browser/closing.js";
import { groups } from "./browser/groups.js";
import { opening } from "./browser/opening.js";
import { places } from "./browser/places.js";
import { sleeping } from "./browser/sleeping.js";
import { windows } from "./browser/windows.js";
import type { BrowserCase, CommandCase } from "./case.js";
import { arrangeCases } from "./commands/arrange.js";
import { closeCases } from "./commands/close.js";
import { openCases } from "./commands/open.js";
import { savedCases } from "./commands/saved.js";

export const browserCases: readonly BrowserCase[] = [
  ...closing,
  ...asking,
  ...opening,
  ...addresses,
  ...groups,
  ...places,
  ...sleeping,
  ...windows,
];

export const commandCases: readonly CommandCase[] = [...openCases, ...arrangeCases, ...closeCases, ...savedCases];
