/** A page that is not the server's, in a real browser, against the real server: rows 2, 6 and 7 of the known failures. */
import { createClient } from "@connectrpc/connect";
import { DeviceService, Kind } from "@throwbar/es/pb/device";
import { Scope } from "@throwbar/es/pb/option";
import { createTransport } from "@throwbar/es/transport";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Attack, attack, everyPath, type Tried } from "./harness/attack.js";
import { Browser } from "./harness/browser.js";
import { soon } from "./harness/fixture.js";
import { Pages } from "./harness/pages.js";
import { attackPath, Rebinding, reboundName } from "./harness/rebinding.js";
import { type Api, Server } from "./harness/server.js";

let server: Server;
let pages: Pages;
let rebinding: Rebinding;
let browser: Browser;
let api: Api;
let paths: string[];
let token: string;

beforeAll(async () => {
  pages = await Pages.start();
  server = await Server.start();
  rebinding = await Rebinding.start(server.port);
  browser = await Browser.start(server.port, pages.port, `${reboundName} 127.0.0.1:${rebinding.port}`);
  api = await server.api();
  paths = await everyPath();
  // Something to steal, to revoke and to read.
  token = (await api.tokens.createToken({ name: "stolen", scope: Scope.OPERATOR })).secret;
  const { code } = await api.devices.createPairingCode({});
  const devices = createClient(DeviceService, createTransport({ baseUrl: server.url }));
  await devices.pair({ code, name: "laptop", kind: Kind.BROWSER });
});

afterAll(async () => {
  await browser?.stop();
  await rebinding?.stop();
  await pages?.stop();
  await server?.remove();
});

/** All that a page could have changed. */
async function state(): Promise<unknown> {
  return [
    (await api.devices.listDevices({})).devices.map(({ deviceId, name }) => [deviceId, name]),
    (await api.tokens.listTokens({})).tokens.map(({ tokenId, name }) => [tokenId, name]),
    (await api.commands.listCommands({})).commands.map(({ commandId }) => commandId),
  ];
}

const total = (values: Map<string, number>) => [...values.values()].reduce((sum, value) => sum + value, 0);

/** Paths that are tried at a time. */
const together = 6;

async function tryAll(page: Page, base: string): Promise<Tried[]> {
  const tried: Tried[] = [];
  for (let i = 0; i < paths.length; i += together) {
    const some = paths.slice(i, i + together).map((path) => {
      // The browser lets more and more time pass between sockets that fail.
      const input: Attack = { base, path, token, socket: /Watch|Connect|Stream|Chat|Reflection|metrics/.test(path) };
      return page.evaluate(attack, input);
    });
    tried.push(...(await Promise.all(some)));
  }
  return tried;
}

/** Runs an attack and holds what the server says of it against what it must have been. */
async function nothingComesOf(page: Page, base: string): Promise<Tried[]> {
  const before = await state();
  const calls = await server.metrics("throwbar_calls_total");
  const refused = total(await server.metrics("throwbar_http_refused_total"));
  const tried = await tryAll(page, base);
  expect(tried.flatMap(({ got }) => got)).toEqual([]);
  const requests = tried.reduce((sum, each) => sum + each.requests, 0);
  expect(requests).toBeGreaterThan(paths.length * 35);
  // The browser joins preflights of one address, and holds back what it knows to be refused.
  expect(total(await server.metrics("throwbar_http_refused_total")) - refused).toBeGreaterThan(paths.length * 15);
  expect(await server.metrics("throwbar_calls_total")).toEqual(calls);
  expect(await state()).toEqual(before);
  return tried;
}

test("security row 2: a page of another port of this machine gets nowhere", { timeout: 300_000 }, async () => {
  expect(paths.length).toBeGreaterThan(50);
  const page = await browser.openTab(`http://127.0.0.1:${pages.port}/`);
  await nothingComesOf(page, server.url);
  await page.close();
});

test("security row 2: a page of another site, and one without an origin, get nowhere", {
  timeout: 300_000,
}, async () => {
  const page = await browser.openTab("http://evil.test/");
  await nothingComesOf(page, `http://localhost:${server.port}`);
  // A frame in a sandbox has the origin null.
  await page.evaluate(() => {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts allow-forms");
    frame.srcdoc = "<body></body>";
    document.body.append(frame);
    return new Promise((resolve) => {
      frame.onload = resolve;
    });
  });
  // Frames of the attack that are gone may be listed a moment longer.
  const sandboxed = () => page.frames().filter((each) => each.url() === "about:srcdoc");
  await expect.poll(() => sandboxed().length, soon).toBe(1);
  const [frame] = sandboxed();
  const calls = await server.metrics("throwbar_calls_total");
  for (const path of paths.filter((each) => /ListDevices|Dispatch|Pair|Watch|Check/.test(each))) {
    expect((await frame?.evaluate(attack, { base: server.url, path, token, socket: false }))?.got).toEqual([]);
  }
  expect(await server.metrics("throwbar_calls_total")).toEqual(calls);
  await page.close();
});

test("security row 7: a name that was made to lead to this machine gets nowhere", { timeout: 300_000 }, async () => {
  const base = `http://${reboundName}:${server.port}`;
  const page = await browser.context.newPage();
  await page.goto(`${base}${attackPath}`);
  expect(await page.evaluate(() => location.origin)).toBe(base);
  const tried = await nothingComesOf(page, base);
  // It is of one origin with what it calls, so that it reads the answers: they all say no.
  const statuses = new Set(tried.flatMap((each) => each.statuses));
  expect([...statuses]).toEqual([403]);
  await page.close();
});

test("an origin that is allowed gets in by a token, which shows that the attack would", async () => {
  const origin = `http://127.0.0.1:${pages.port}`;
  const open = await Server.start({}, "--allow-origin", origin);
  try {
    const page = await browser.openTab(`${origin}/`);
    const path = "/throwbar.control.v1.DevicesService/ListDevices";
    const tried = await page.evaluate(attack, { base: open.url, path, token: await open.ownerToken(), socket: true });
    expect(tried.got).toContain("POST application/json: 200");
    expect(tried.got).toContain("GET: 200");
    expect(tried.got.filter((each) => /text|form|no-cors|EventSource|WebSocket|script|image/.test(each))).toEqual([]);
    await page.close();
  } finally {
    await open.remove();
  }
});
