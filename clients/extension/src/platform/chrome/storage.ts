import type { StorageArea, StoragePort } from "../port.js";
import { unlessStopped } from "./errors.js";

function area(of: chrome.storage.StorageArea): StorageArea {
  return {
    get: (keys) => unlessStopped(() => of.get([...keys])),
    all: () => unlessStopped(() => of.get(null)),
    set: (items) => unlessStopped(() => of.set(items)),
    remove: (keys) => unlessStopped(() => of.remove([...keys])),
  };
}

/** A function: the offscreen document has no chrome.storage. */
export function chromeStorage(): StoragePort {
  return {
    session: area(chrome.storage.session),
    local: area(chrome.storage.local),
    onLocalChange: (listener) =>
      chrome.storage.onChanged.addListener((changes, name) => {
        if (name === "local") {
          listener(Object.keys(changes));
        }
      }),
  };
}
