// @ts-check
/**
 * What Chromium needs beside the common part of the manifest. The key fixes the extension's id, which the server pins when
 * it pairs.
 * @type {import("../manifest.mjs").Target}
 */
export const chrome = {
  name: "chrome",
  esbuild: "chrome120",
  entries: ["worker.ts", "offscreen.ts", "options.tsx", "panel.tsx"],
  limits: { worker: 150_000 },
  without: [],
  permissions: ["offscreen", "sidePanel"],
  manifest: {
    key: "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA2PhJj/P2F0iIkF6n45i5b1XpqhObzf05sL+SE5tBN4ol65KsuWonz32JRIVBpBM2GHxBa5jDqJb5v+5MaLaKd98Isg+RRyHhMLlBUVaHGXa9KLOcqGhuVVk1Z06e5qYFGdopHgrjji8PXENb6iNrJANkx81eYi9g8R/Pq/GADcg90t2A+EUnuUvd1d8+Gesj20TyJ+d986V/MWUYmAXGCZLOCbPjXHPkMED9xoJ+2MwugX9Q5EI5B29yVIXUfxV6PNf+JF7L0QnJAaZzelEA8WrdDN5pf1okECalCFnZgKlVyJhhANUNTS2QO4aGTvNvyLNJUqivT1erEPUJmKEVnwIDAQAB",
    minimum_chrome_version: "120",
    // A pattern may name a port, and Chromium holds the extension to it.
    host_permissions: ["http://127.0.0.1:3913/*", "http://localhost:3913/*"],
    background: { service_worker: "worker.js", type: "module" },
    side_panel: { default_path: "panel.html" },
  },
};
