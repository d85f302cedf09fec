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

function page(host: string, path: string): string {
  const title = host.includes("youtube") ? `YouTube ${path}` : `Page ${host}${path}`;
  return `<!doctype html><title>${title}</title><h1>${title}</h1><input>${path.includes("guard") ? guarded : ""}${path.includes("restless") ? restless : ""}`;
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
