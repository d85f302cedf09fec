/** What DNS rebinding comes to: a name and a port that first lead to a page of an attacker, and then to the server. */
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";

/** The attacker's name. */
export const reboundName = "rebound.example";

export const attackPath = "/attack";

const body = "<!doctype html><head></head><body></body>";
const answer = `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`;

export class Rebinding {
  readonly port: number;
  readonly #server: Server;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  static async start(to: number): Promise<Rebinding> {
    const server = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.once("data", (first) => {
        if (first.toString("latin1").startsWith(`GET ${attackPath} `)) {
          socket.end(answer);
          return;
        }
        const behind = connect(to, "127.0.0.1");
        behind.on("error", () => socket.destroy());
        behind.on("close", () => socket.destroy());
        socket.on("close", () => behind.destroy());
        behind.write(first);
        socket.pipe(behind).pipe(socket);
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") {
      throw new Error("no port");
    }
    return new Rebinding(server, address.port);
  }

  async stop(): Promise<void> {
    this.#server.close();
    await once(this.#server, "close");
  }
}
