/** What only the event page does beside what a worker does. */
import { firefox } from "./api.js";

/** Has to be called while the event page starts: it registers a listener. */
export function openSidebarByIcon(): void {
  chrome.action.onClicked.addListener(() => void firefox().sidebarAction.toggle());
}

/** Opens the settings after the installation: Firefox asks for access to the server only where a person clicks. */
export function showSettingsOnce(): void {
  chrome.runtime.onInstalled.addListener(({ reason }) => {
    if (reason === "install") {
      void chrome.runtime.openOptionsPage();
    }
  });
}
