import { Scope } from "@throwbar/es/pb/option";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Fixture, soon } from "./harness/fixture.js";

let f: Fixture;

beforeAll(async () => {
  f = await Fixture.start("laptop", { THROWBAR_MODEL: "", THROWBAR_MODEL_BASE_URL: "", OPENAI_API_KEY: "" });
});

afterAll(async () => {
  await f?.stop();
});

test("without a model the panel says in one line what to set", async () => {
  const { secret } = await f.api.tokens.createToken({ name: "side panel", scope: Scope.OPERATOR });
  await f.page.fill("#operator", secret);
  await f.page.click("#operator-button");
  await f.page.waitForSelector("#operator-result:not(:empty)");
  const panel = await f.browser.open("panel.html");
  await expect.poll(() => panel.textContent("#obstacle"), soon).toMatch(/^no model is set: .*THROWBAR_MODEL/);
  expect(await panel.isDisabled("#send")).toBe(true);
});

test("a code that is wrong is told in the server's words, and pairs nothing", async () => {
  await f.page.fill("#code", "AAAAA-AAAAA");
  await f.page.click("#pair-button");
  await f.page.waitForSelector('#pair-result[data-ok="false"]');
  await expect.poll(() => f.page.textContent("#pair-result"), soon).toContain("pairing code");
  expect((await f.api.devices.listDevices({})).devices).toHaveLength(1);
});
