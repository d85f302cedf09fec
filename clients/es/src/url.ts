/**
 * The rule for addresses that a command may open or load, and the match of closeTabsByUrl. A bare domain gets https;
 * only http and https; no credentials. testdata/urls.json is the table that every implementation is held to.
 */
export type UrlRefusal = "empty" | "scheme" | "credentials" | "form";

export type UrlVerdict =
  | { readonly ok: true; readonly url: string }
  | { readonly ok: false; readonly reason: UrlRefusal; readonly text: string };

const texts: Record<UrlRefusal, string> = {
  empty: "the address is empty",
  scheme: "only http and https addresses can be opened",
  credentials: "the address holds a user name or password; remove it",
  form: "this is no web address; give a domain such as example.com, or a full address",
};

const scheme = /^([a-z][a-z0-9+.-]*):/i;
const hostAndPort = /^[^/?#:@]+:[0-9]{1,5}(?=[/?#]|$)/;
const controlOrSpace = /[\p{Cc}\p{Zl}\p{Zp}\s]/u;

function refuse(reason: UrlRefusal): UrlVerdict {
  return { ok: false, reason, text: texts[reason] };
}

/** Says whether an address may be opened, and the form in which it is. */
export function checkUrl(input: string): UrlVerdict {
  const text = input.replace(/^ +| +$/g, "");
  if (text === "") {
    return refuse("empty");
  }
  const found = hostAndPort.test(text) ? null : scheme.exec(text);
  const name = found?.[1]?.toLowerCase();
  if (name !== undefined && name !== "http" && name !== "https") {
    return refuse("scheme");
  }
  // A parser drops tabs and line ends and takes a backslash for a slash: what is checked has to be what is opened.
  const address = text.split(/[?#]/, 1)[0] ?? "";
  if (controlOrSpace.test(text) || address.includes("\\")) {
    return refuse("form");
  }
  if (name !== undefined && !/^https?:\/\/[^/?#]/i.test(text)) {
    return refuse("form");
  }
  if (name === undefined && !bareDomain(text)) {
    return refuse("form");
  }
  return parsed(name === undefined ? `https://${text}` : text);
}

function bareDomain(text: string): boolean {
  const host = text.split(/[/?#]/, 1)[0] ?? "";
  const name = host.replace(/:[0-9]{1,5}$/, "");
  return name === "localhost" || name.includes(".") || /^\[[0-9a-f:.]+\]$/i.test(name) || host.includes("@");
}

function parsed(text: string): UrlVerdict {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return refuse("form");
  }
  if (url.username !== "" || url.password !== "" || /^https?:\/\/[^/?#]*@/i.test(text)) {
    return refuse("credentials");
  }
  if (url.hostname === "" || /^\.+$/.test(url.hostname)) {
    return refuse("form");
  }
  return { ok: true, url: url.href };
}

/**
 * Makes the match of closeTabsByUrl. A star stands for any text, also none; a pattern has to cover the whole address. Without
 * a star two addresses match if they are the same once both are written the same way.
 */
export function urlMatcher(pattern: string): (url: string) => boolean {
  const text = pattern.trim();
  if (!text.includes("*")) {
    const wanted = written(text);
    return (url) => written(url) === wanted;
  }
  const absolute = text.startsWith("*") || text.includes("://") ? text : `https://${text}`;
  const parts = absolute.split("*");
  return (url) => covers(parts, url) || covers(parts, written(url));
}

/** Finds the parts in order, the first at the start and the last at the end. No backtracking: a pattern is outside input. */
function covers(parts: readonly string[], url: string): boolean {
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  const end = url.length - last.length;
  if (!url.startsWith(first) || !url.endsWith(last) || end < first.length) {
    return false;
  }
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = url.indexOf(part, at);
    if (found < 0 || found + part.length > end) {
      return false;
    }
    at = found + part.length;
  }
  return true;
}

/** One way to write an address, so that example.com and https://EXAMPLE.com:443/ are the same. */
function written(address: string): string {
  const verdict = checkUrl(address);
  if (verdict.ok) {
    return verdict.url;
  }
  try {
    const url = new URL(address);
    if (url.host !== "" && url.pathname === "") {
      url.pathname = "/";
    }
    return url.href;
  } catch {
    return address;
  }
}
