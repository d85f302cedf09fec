/** Whether the browser shows private windows to the extension, which a person decides on its page of extensions. */
export const seesPrivate = (): Promise<boolean> => chrome.extension.isAllowedIncognitoAccess();
