import type { About } from "../port.js";
import { firefox } from "./api.js";

/** Firefox tells its name only when asked; a list of brands it does not have. */
export async function about(): Promise<About> {
  const [{ os }, { name, version }] = await Promise.all([
    chrome.runtime.getPlatformInfo(),
    firefox().runtime.getBrowserInfo(),
  ]);
  const [major = version] = version.split(".");
  return { version: chrome.runtime.getManifest().version, agent: `${name} ${major}`, platform: os };
}
