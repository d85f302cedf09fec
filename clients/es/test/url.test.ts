import { expect, test } from "vitest";
import { checkUrl, urlMatcher } from "../src/url.js";
import table from "../testdata/urls.json" with { type: "json" };

test.each(table.addresses)("$input", ({ input, url, reason }) => {
  const verdict = checkUrl(input);
  expect(verdict.ok ? { url: verdict.url } : { reason: verdict.reason }).toEqual(
    url === undefined ? { reason } : { url },
  );
});

test.each(table.matches)("$pattern on $url", ({ pattern, url, match }) => {
  expect(urlMatcher(pattern)(url)).toBe(match);
});

test("an allowed address stays as it is when it is checked again", () => {
  for (const { url } of table.addresses) {
    if (url !== undefined) {
      expect(checkUrl(url)).toEqual({ ok: true, url });
    }
  }
});

test("a pattern full of stars costs no more than a plain one", () => {
  const matches = urlMatcher(`https://example.com/${"*a".repeat(2000)}*b`);
  expect(matches(`https://example.com/${"a".repeat(60_000)}`)).toBe(false);
});
