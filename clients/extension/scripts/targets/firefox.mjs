// @ts-check
/**
 * What Firefox needs beside the common part of the manifest: an event page instead of a service worker, a sidebar instead
 * of a side panel, and no offscreen document, so that the link runs in the event page.
 * @type {import("../manifest.mjs").Target}
 */
export const firefox = {
  name: "firefox",
  esbuild: "firefox140",
  entries: ["eventpage.ts", "options.tsx", "panel.tsx"],
  limits: {},
  without: ["offscreen.html"],
  permissions: [],
  manifest: {
    browser_specific_settings: {
      gecko: {
        id: "extension@throwbar.dev",
        // The first that knows what is said about data below; all that are older are without updates.
        strict_min_version: "140.0",
        // It sends what its own person asks for to that person's own server, and nothing to its makers.
        data_collection_permissions: { required: ["none"] },
      },
    },
    // Firefox knows no ports in these.
    host_permissions: ["http://127.0.0.1/*", "http://localhost/*"],
    background: { scripts: ["eventpage.js"], type: "module" },
    sidebar_action: { default_panel: "panel.html", default_title: "Throwbar", open_at_install: false },
  },
};
