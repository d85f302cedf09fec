/** A peer: a program that is spoken to by MCP over its standard input and output, with the protocol's own SDK. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

/** What is used of the SDK. The package is installed on demand, so its own types are not there when this is checked. */
interface Client {
  connect(transport: unknown): Promise<void>;
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  close(): Promise<void>;
}

interface Sdk {
  readonly Client: new (about: { name: string; version: string }) => Client;
  readonly StdioClientTransport: new (server: {
    command: string;
    args: string[];
    cwd: string;
    stderr: "ignore";
  }) => unknown;
}

export interface Answer {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly isError?: boolean;
}

/** Where the peers are installed. */
export class Peers {
  readonly #require: NodeJS.Require;

  constructor(folder: string) {
    this.#require = createRequire(`${folder}/package.json`);
  }

  /** The path of a package's program, and its version. */
  program(name: string): { readonly path: string; readonly version: string } {
    const manifest = this.#require(`${name}/package.json`) as { version: string; bin: Record<string, string> };
    const [bin = ""] = Object.values(manifest.bin);
    return {
      path: this.#require.resolve(`${name}/package.json`).replace(/package\.json$/, bin),
      version: manifest.version,
    };
  }

  async connect(args: readonly string[], cwd: string): Promise<Client> {
    const load = async (name: string) =>
      (await import(pathToFileURL(this.#require.resolve(`@modelcontextprotocol/sdk/client/${name}.js`)).href)) as Sdk;
    const [{ Client }, { StdioClientTransport }] = [await load("index"), await load("stdio")];
    const client = new Client({ name: "bench", version: "0" });
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [...args], cwd, stderr: "ignore" }),
    );
    return client;
  }
}

export type { Client };

export function textOf(answer: unknown): string {
  const { content, isError } = answer as Answer;
  const text = content.map((part) => part.text ?? "").join("\n");
  if (isError === true) {
    throw new Error(text);
  }
  return text;
}
