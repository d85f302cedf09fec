/** What the extension may do, and where its code may come from. */
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { manifestOf, targets } from "../scripts/manifest.mjs";
import { chrome } from "../scripts/targets/chrome.mjs";
import { firefox } from "../scripts/targets/firefox.mjs";

const folder = fileURLToPath(new URL("..", import.meta.url));

interface Manifest extends Record<string, unknown> {
  readonly permissions: readonly string[];
  readonly host_permissions: readonly string[];
  readonly optional_host_permissions: readonly string[];
  readonly content_security_policy: Readonly<Record<string, string>>;
}

const read = (target: (typeof targets)[number]) => manifestOf(target) as unknown as Manifest;

const beyond: Record<string, { permissions: string[]; hosts: string[] }> = {
  chrome: {
    permissions: ["offscreen", "sidePanel"],
    hosts: ["http://127.0.0.1:3913/*", "http://localhost:3913/*"],
  },
  // Its patterns name no port.
  firefox: { permissions: [], hosts: ["http://127.0.0.1/*", "http://localhost/*"] },
};

describe.each(targets)("security row 1 for $name", (target) => {
  const manifest = read(target);

  test("no code from elsewhere, and no page that takes the extension's into its own", () => {
    const policies = manifest.content_security_policy;
    expect(Object.keys(policies)).toEqual(["extension_pages"]);
    const policy = new Map(
      (policies.extension_pages ?? "").split(";").map((part) => {
        const [name, ...sources] = part.trim().split(" ");
        return [name, sources.join(" ")];
      }),
    );
    expect(Object.fromEntries(policy)).toEqual({
      "default-src": "'none'",
      "script-src": "'self'",
      "style-src": "'self'",
      "img-src": "'self'",
      "connect-src": "http: https:",
      "object-src": "'none'",
      "base-uri": "'none'",
      "form-action": "'none'",
      "frame-ancestors": "'none'",
    });
    expect(manifest).not.toHaveProperty("externally_connectable");
    expect(manifest).not.toHaveProperty("web_accessible_resources");
    expect(manifest).not.toHaveProperty("content_scripts");
    expect(manifest).not.toHaveProperty("sandbox");
  });

  test("no more is asked for than what it needs", () => {
    const more = beyond[target.name];
    expect([...manifest.permissions].sort()).toEqual(
      ["alarms", "storage", "tabGroups", "tabs", ...(more?.permissions ?? [])].sort(),
    );
    // By itself it reaches the server of this machine. Another one the person names, and the browser asks for that one alone.
    expect(manifest.host_permissions).toEqual(more?.hosts);
    expect(manifest.optional_host_permissions).toEqual(["http://*/*", "https://*/*"]);
  });
});

test("each browser gets a background, a panel and an identity of its own kind", () => {
  const [forChrome, forFirefox] = [read(chrome), read(firefox)];
  expect(forChrome.background).toEqual({ service_worker: "worker.js", type: "module" });
  expect(forChrome.side_panel).toEqual({ default_path: "panel.html" });
  expect(forChrome.minimum_chrome_version).toBe("120");
  expect(forFirefox.background).toEqual({ scripts: ["eventpage.js"], type: "module" });
  expect(forFirefox.sidebar_action).toMatchObject({ default_panel: "panel.html", open_at_install: false });
  expect(forFirefox.browser_specific_settings).toEqual({
    gecko: {
      id: "extension@throwbar.dev",
      strict_min_version: "140.0",
      data_collection_permissions: { required: ["none"] },
    },
  });
  for (const [manifest, foreign] of [
    [forChrome, ["browser_specific_settings", "sidebar_action"]],
    [forFirefox, ["key", "minimum_chrome_version", "side_panel"]],
  ] as const) {
    for (const key of foreign) {
      expect(manifest).not.toHaveProperty(key);
    }
  }
});

test("the rest is the same for all", () => {
  const keys = [
    "manifest_version",
    "name",
    "version",
    "description",
    "action",
    "options_ui",
    "content_security_policy",
  ];
  for (const key of keys) {
    expect(read(firefox)[key], key).toEqual(read(chrome)[key]);
  }
});

test("what Firefox would turn into https stays http: its own policy is replaced", () => {
  expect(read(firefox).content_security_policy.extension_pages).not.toContain("upgrade-insecure-requests");
});

test("security row 1: pages load files of the extension only, and read nothing from their own address", async () => {
  for (const name of await readdir(`${folder}/static`)) {
    if (name.endsWith(".html")) {
      const page = await readFile(`${folder}/static/${name}`, "utf8");
      expect(page, name).not.toMatch(/(src|href)="(https?:)?\/\//);
      expect(page, name).not.toMatch(/<script(?![^>]* src=)/);
      expect(page, name).not.toMatch(/ on[a-z]+=/);
    }
  }
  const sources = await readdir(`${folder}/src`, { recursive: true });
  for (const name of sources.filter((each) => /\.tsx?$/.test(each))) {
    const source = await readFile(`${folder}/src/${name}`, "utf8");
    expect(source, name).not.toMatch(
      /location\.(search|hash|href)|URLSearchParams|\beval\(|new Function\(|dangerouslySetInnerHTML/,
    );
  }
});
