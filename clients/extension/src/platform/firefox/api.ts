/**
 * Firefox's own name for the API, and what it has that Chromium has not. In Manifest V3 its `chrome` returns promises too,
 * so that everything else is shared.
 */
export interface FirefoxApi {
  readonly sidebarAction: {
    toggle(): Promise<void>;
  };
}

export function firefox(): FirefoxApi {
  const { browser } = globalThis as typeof globalThis & { readonly browser?: unknown };
  return (browser ?? chrome) as unknown as FirefoxApi;
}
