import type { About } from "../port.js";

export async function about(): Promise<About> {
  const { os } = await chrome.runtime.getPlatformInfo();
  return { version: chrome.runtime.getManifest().version, agent: agentName(), platform: os };
}

interface Brand {
  readonly brand: string;
  readonly version: string;
}

/** The browser's own name. Beside it the list has a made-up one and Chromium, from which all of them descend. */
export function agentName(): string {
  const { userAgentData } = navigator as Navigator & { userAgentData?: { readonly brands: readonly Brand[] } };
  const brands = (userAgentData?.brands ?? []).filter(({ brand }) => !/not.*brand/i.test(brand));
  const own = brands.find(({ brand }) => brand !== "Chromium") ?? brands[0];
  return own === undefined ? "Chromium" : `${own.brand} ${own.version}`;
}

export const seesPrivate = (): Promise<boolean> => chrome.extension.isAllowedIncognitoAccess();
