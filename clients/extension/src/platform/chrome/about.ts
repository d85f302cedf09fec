import type { About } from "../port.js";

export async function about(): Promise<About> {
  const { os } = await chrome.runtime.getPlatformInfo();
  return { version: chrome.runtime.getManifest().version, agent: agentName(navigator as Likeness), platform: os };
}

interface Brand {
  readonly brand: string;
  readonly version: string;
}

/** What a browser says of itself. */
export interface Likeness {
  readonly userAgent: string;
  readonly userAgentData?: { readonly brands: readonly Brand[] };
  readonly brave?: unknown;
}

/** Browsers that are named in the older form only. */
const named: readonly (readonly [RegExp, string])[] = [
  [/\bVivaldi\/(\d+)/, "Vivaldi"],
  [/\bOPR\/(\d+)/, "Opera"],
  [/\bEdg\/(\d+)/, "Microsoft Edge"],
  [/\bFirefox\/(\d+)/, "Firefox"],
];

/**
 * The browser's own name and main version. The list of brands has a made-up one, and those from which a browser descends:
 * Chromium, and often Google Chrome.
 */
export function agentName({ userAgent, userAgentData, brave }: Likeness): string {
  const brands = (userAgentData?.brands ?? []).filter(({ brand }) => !/not.*brand/i.test(brand));
  const own = brands.find(({ brand }) => brand !== "Chromium" && brand !== "Google Chrome");
  if (own !== undefined) {
    return `${own.brand} ${own.version}`;
  }
  for (const [pattern, name] of named) {
    const version = pattern.exec(userAgent)?.[1];
    if (version !== undefined) {
      return `${name} ${version}`;
    }
  }
  const line = brands.find(({ brand }) => brand === "Google Chrome") ?? brands[0];
  if (line === undefined) {
    return "Chromium";
  }
  return `${brave === undefined ? line.brand : "Brave"} ${line.version}`;
}
