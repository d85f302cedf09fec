/** What pages with a person in front of them need. */
export { openSettings } from "../chrome/page.js";

/**
 * Asks for access to a server. Firefox leaves the hosts of the manifest to the person as well, so it is asked for every
 * server; what is granted already is not asked again. Has to be called first thing in the handler of a click: Firefox
 * forgets the click at the first wait.
 */
export function allowServer(origin: string): Promise<boolean> {
  const { protocol, hostname } = new URL(origin);
  // A pattern for hosts names no port in Firefox.
  return chrome.permissions.request({ origins: [`${protocol}//${hostname}/*`] });
}
