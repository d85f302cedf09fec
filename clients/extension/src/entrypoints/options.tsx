import { showSettings } from "../pairing/settings.js";
import { about } from "../platform/chrome/about.js";
import { seesPrivate } from "../platform/chrome/incognito.js";
import { chromeMessages } from "../platform/chrome/messages.js";
import { allowServer } from "../platform/chrome/page.js";
import { chromeStorage } from "../platform/chrome/storage.js";

const root = document.getElementById("root");
if (root !== null) {
  void showSettings(root, {
    storage: chromeStorage(),
    messages: chromeMessages,
    about,
    allow: allowServer,
    seesPrivate,
  });
}
