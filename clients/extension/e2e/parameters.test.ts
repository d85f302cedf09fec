/** Addresses in the URL of a page of the extension: row 1 of the known failures. */
import { Scope } from "@throwbar/es/pb/option";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Fixture, soon } from "./harness/fixture.js";

let f: Fixture;

beforeAll(async () => {
  f = await Fixture.start();
});

afterAll(async () => {
  await f?.stop();
});

const names = [
  "server",
  "url",
  "host",
  "origin",
  "base",
  "baseUrl",
  "base_url",
  "api",
  "apiUrl",
  "endpoint",
  "gateway",
  "gatewayUrl",
  "ws",
  "wsUrl",
  "address",
  "redirect",
  "next",
  "pairing",
  "token",
  "operator",
  "config",
];

test("security row 1: no parameter of a page changes where its token goes", async () => {
  const { secret } = await f.api.tokens.createToken({ name: "side panel", scope: Scope.OPERATOR });
  await f.page.fill("#operator", secret);
  await f.page.click("#operator-button");
  await f.page.waitForSelector("#operator-result:not(:empty)");
  const canary = `http://127.0.0.1:${f.pages.port}`;
  const asked: string[] = [];
  f.browser.context.on("request", (request) => {
    if (!request.url().startsWith("chrome-extension://")) {
      asked.push(request.url());
    }
  });
  const query = names.map((name) => `${name}=${encodeURIComponent(canary)}`).join("&");
  const json = encodeURIComponent(JSON.stringify({ server: canary, pairing: { server: canary } }));
  for (const page of ["panel.html", "options.html"] as const) {
    for (const suffix of [`?${query}`, `#${query}`, `?config=${json}#${json}`, `?${encodeURIComponent(canary)}`]) {
      const opened = await f.browser.open(page);
      await opened.goto(`${opened.url()}${suffix}`);
      const before = asked.length;
      await opened.reload(); // with what follows a # alone, nothing was loaded
      if (page === "panel.html") {
        await opened.waitForSelector("#obstacle, #send");
        await expect.poll(() => asked.length, soon).toBeGreaterThan(before); // it has called its own server
      } else {
        await opened.waitForSelector("#server");
        expect(await opened.inputValue("#server")).toBe(f.server.url);
      }
      await opened.close();
    }
  }
  expect(asked.filter((url) => !url.startsWith(f.server.url))).toEqual([]);
  expect([...f.pages.hits.keys()].filter((url) => url.startsWith(canary))).toEqual([]);
});
