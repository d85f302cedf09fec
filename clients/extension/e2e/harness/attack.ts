/** What a page tries against a server that is not its own. It runs inside the page. */
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The paths of every call of the contract, from its descriptors, and those of health and reflection. */
export async function everyPath(): Promise<string[]> {
  const image = fileURLToPath(new URL("../../../../gen/descriptors.binpb", import.meta.url));
  const set = fromBinary(FileDescriptorSetSchema, await readFile(image));
  const paths = set.file.flatMap((file) =>
    file.service.flatMap((service) => service.method.map(({ name }) => `/${file.package}.${service.name}/${name}`)),
  );
  return [
    ...paths,
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/metrics",
    "/",
  ];
}

export interface Attack {
  readonly base: string;
  readonly path: string;
  /** A token that is valid: even that must not help. */
  readonly token: string;
  /** Whether a WebSocket is tried too. */
  readonly socket: boolean;
}

export interface Tried {
  /** How many requests were made, or asked for: a preflight that fails is the end of one. */
  readonly requests: number;
  /** What the page could read, or what was opened for it. */
  readonly got: string[];
  readonly statuses: number[];
}

/** Tries one path in every way that a page has. It is handed to the browser as text: it may use nothing from outside. */
export async function attack({ base, path, token, socket: trySocket }: Attack): Promise<Tried> {
  const url = base + path;
  const got: string[] = [];
  const statuses: number[] = [];
  let requests = 0;
  const text = new TextEncoder().encode("{}");
  const enveloped = (body: Uint8Array) => new Uint8Array([0, 0, 0, 0, body.length, ...body]);
  const empty = new Uint8Array();
  const ask = async (name: string, to: string, init: RequestInit) => {
    requests++;
    try {
      const answer = await fetch(to, { ...init, cache: "no-store", signal: AbortSignal.timeout(10_000) });
      if (answer.type !== "opaque") {
        statuses.push(answer.status);
        if (answer.ok) {
          got.push(`${name}: ${answer.status}`);
        }
      }
    } catch {
      // Refused, or not to be read.
    }
  };
  const bearer = { Authorization: `Bearer ${token}` };
  const bodies: [string, BodyInit][] = [
    ["application/json", "{}"],
    ["application/proto", empty],
    ["application/connect+json", enveloped(text)],
    ["application/connect+proto", enveloped(empty)],
    ["application/grpc", enveloped(empty)],
    ["application/grpc-web+proto", enveloped(empty)],
    ["application/grpc-web+json", enveloped(text)],
    ["text/plain", "{}"],
    ["application/x-www-form-urlencoded", "a=b"],
  ];
  const query = "?connect=v1&encoding=json&message=%7B%7D";
  const tries: Promise<void>[] = [];
  for (const [type, body] of bodies) {
    const headers = { "Content-Type": type };
    tries.push(
      ask(`POST ${type}`, url, { method: "POST", headers: { ...headers, ...bearer }, body }),
      ask(`POST ${type} without a token`, url, { method: "POST", headers, body }),
      ask(`POST ${type} no-cors`, url, { method: "POST", mode: "no-cors", credentials: "include", headers, body }),
    );
  }
  const form = new FormData();
  form.set("a", "b");
  tries.push(
    ask("upload", url, { method: "POST", mode: "no-cors", body: form }),
    ask("GET", url + query, { headers: bearer }),
    ask("GET without a token", url + query, { mode: "no-cors", credentials: "include" }),
    ask("GET with a token in the URL", `${url}${query}&access_token=${token}`, { mode: "no-cors" }),
    ask("PUT", url, { method: "PUT", headers: bearer }),
  );
  const opened = (name: string, open: (done: (ok: boolean) => void) => void) =>
    new Promise<void>((resolve) => {
      requests++;
      const timer = setTimeout(resolve, 5000);
      open((ok) => {
        clearTimeout(timer);
        if (ok) {
          got.push(name);
        }
        resolve();
      });
    });
  tries.push(
    opened("EventSource", (done) => {
      const source = new EventSource(url + query);
      source.onopen = () => done(true);
      source.onerror = () => {
        source.close();
        done(false);
      };
    }),
    opened("script", (done) => {
      const script = document.createElement("script");
      script.src = url + query;
      script.onload = () => done(true);
      script.onerror = () => done(false);
      document.head.append(script);
    }),
    opened("image", (done) => {
      const image = new Image();
      image.onload = () => done(true);
      image.onerror = () => done(false);
      image.src = url + query;
    }),
  );
  if (trySocket) {
    tries.push(
      opened("WebSocket", (done) => {
        const socket = new WebSocket(url.replace(/^http/, "ws"));
        socket.onopen = () => done(true);
        socket.onerror = () => done(false);
      }),
    );
  }
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"]) {
    requests++;
    navigator.sendBeacon(url, new Blob(["{}"], { type }));
  }
  // Forms, by navigation of a frame.
  for (const [method, enctype] of [
    ["post", "text/plain"],
    ["post", "application/x-www-form-urlencoded"],
    ["post", "multipart/form-data"],
    ["get", ""],
  ] as const) {
    requests++;
    tries.push(
      new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.name = `frame${Math.random()}`;
        document.body.append(frame);
        const sent = document.createElement("form");
        Object.assign(sent, { method, action: url, target: frame.name, ...(enctype === "" ? {} : { enctype }) });
        sent.innerHTML = `<input name="encoding" value="json"><input name="message" value="{}">`;
        document.body.append(sent);
        const end = () => {
          frame.remove();
          sent.remove();
          resolve();
        };
        const timer = setTimeout(end, 5000);
        frame.onload = () => {
          clearTimeout(timer);
          end();
        };
        sent.submit();
      }),
    );
  }
  await Promise.all(tries);
  return { requests, got, statuses };
}
