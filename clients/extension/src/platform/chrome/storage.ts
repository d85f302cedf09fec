import type { StorageArea, StoragePort } from "../port.js";

function area(of: chrome.storage.StorageArea): StorageArea {
  return {
    get: (keys) => of.get([...keys]),
    all: () => of.get(null),
    set: (items) => of.set(items),
    remove: (keys) => of.remove([...keys]),
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
