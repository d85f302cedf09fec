/** What the extension may do, and where its code may come from. */
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const folder = fileURLToPath(new URL("..", import.meta.url));

const manifest = JSON.parse(await readFile(`${folder}/manifest.json`, "utf8")) as Record<string, unknown> & {
  permissions: string[];
  host_permissions: string[];
  optional_host_permissions: string[];
  content_security_policy: Record<string, string>;
};

test("security row 1: no code from elsewhere, and no page that takes the extension's into its own", () => {
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

test("security row 1: no more is asked for than what it needs", () => {
  expect([...manifest.permissions].sort()).toEqual([
    "alarms",
    "offscreen",
    "sidePanel",
    "storage",
    "tabGroups",
    "tabs",
  ]);
  // By itself it reaches the server of this machine. Another one the person names, and the browser asks for that one alone.
  expect(manifest.host_permissions).toEqual(["http://127.0.0.1:3913/*", "http://localhost:3913/*"]);
  expect(manifest.optional_host_permissions).toEqual(["http://*/*", "https://*/*"]);
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
