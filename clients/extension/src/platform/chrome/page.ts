/** What pages with a person in front of them need. */

/** Asks for access to a server that is not on this machine. Has to be called in the handler of a click. */
export async function allowServer(origin: string): Promise<boolean> {
  // A pattern for hosts may name a port, and the browser holds an extension to it.
  const origins = [`${origin}/*`];
  if (await chrome.permissions.contains({ origins })) {
    return true;
  }
  return chrome.permissions.request({ origins });
}

export async function openSettings(): Promise<void> {
  await chrome.runtime.openOptionsPage();
}
