/** Web pages for the tabs of the tests. Every name under .test leads here. */
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";

const guarded = `<script>addEventListener("beforeunload", (event) => { event.preventDefault(); event.returnValue = "x"; });</script>`;

/** Changes its title with each frame, until it says so. */
const restless = `<script>
  let frame = 0;
  const timer = setInterval(() => {
    document.title = frame < 120 ? "Frame " + frame++ : "Done";
    if (document.title === "Done") clearInterval(timer);
  }, 16);
</script>`;

/** What a page does beside being there, by a word in its path. */
const scripts: readonly (readonly [string, string])[] = [
  ["guard", guarded],
  ["restless", restless],
  ["opens", `<script>document.querySelector("input").onclick = () => open("http://opened.test/");</script>`],
  ["alert", `<script>document.querySelector("input").onclick = () => alert("x");</script>`],
  [
    "pushes",
    `<script>document.querySelector("input").onclick = () => history.pushState(null, "", "/pushed");</script>`,
  ],
];

function page(host: string, path: string): string {
  const title = host.includes("youtube") ? `YouTube ${path}` : `Page ${host}${path}`;
  const script = scripts.filter(([word]) => path.includes(word)).map(([, text]) => text);
  return `<!doctype html><title>${title}</title><h1>${title}</h1><input>${script.join("")}`;
}

/** Answers that are no page: a redirect, nothing at all, a file, silence. True if this is one. */
function otherAnswer(path: string, response: ServerResponse): boolean {
  switch (path) {
    case "/redirects":
      response.writeHead(302, { Location: "/target" }).end();
      return true;
    case "/nothing":
      response.writeHead(204).end();
      return true;
    case "/file":
      response.writeHead(200, { "Content-Disposition": "attachment; filename=x.bin" }).end("x");
      return true;
    case "/silent":
      return true;
    default:
      return false;
  }
}

export class Pages {
  readonly #server: Server;
  readonly port: number;
  /** How often each address was asked for. */
  readonly hits = new Map<string, number>();
  /** Answers that a test has to give itself: of addresses with "never" in them. */
  readonly waiting: ServerResponse[] = [];

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  static async start(): Promise<Pages> {
    const server = createServer((request, response) => {
      const host = request.headers.host ?? "";
      const path = request.url ?? "/";
      const key = `http://${host}${path}`;
      pages.hits.set(key, (pages.hits.get(key) ?? 0) + 1);
      if (otherAnswer(path, response)) {
        return;
      }
      if (path.includes("never")) {
        pages.waiting.push(response);
        return;
      }
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      response.end(page(host, path));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") {
      throw new Error("no port");
    }
    const pages = new Pages(server, address.port);
    return pages;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
