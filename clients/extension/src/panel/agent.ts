/** The calls of the agent that the panel needs. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import { AgentService, type Event } from "@throwbar/es/pb/agent";

export interface Model {
  readonly name: string;
  /** What to set, where no model is. */
  readonly hint: string;
}

export interface Conversation {
  readonly id: string;
  /** The shortest prefix of the id that names it among the open ones, as the server makes it; empty if it is not open. */
  readonly handle: string;
  readonly title: string;
  readonly running: boolean;
  /** Milliseconds since 1970, by the server's clock. */
  readonly updatedAt: number;
}

export interface Agent {
  model(): Promise<Model>;
  chat(conversationId: string, message: string, signal: AbortSignal): AsyncIterable<Event>;
  stop(conversationId: string): Promise<void>;
  /** The stored events after a number, oldest first. */
  events(conversationId: string, after: bigint): Promise<Event[]>;
  /** The conversations that were used last, the latest first. */
  conversations(): Promise<Conversation[]>;
}

const pageSize = 200;
const maxConversations = 100;

export function connectAgent(transport: Transport): Agent {
  const client = createClient(AgentService, transport);
  // Where the last page of a conversation began: whoever reads on need not read all of it again.
  const lastPages = new Map<string, string>();
  return {
    model: async () => {
      const { model, hint } = await client.getModel({});
      return { name: model, hint };
    },
    async *chat(conversationId, message, signal) {
      // Detached: a panel that is closed does not end what it has begun. Only the Stop button does.
      const request = { message, detached: true, ...(conversationId === "" ? {} : { conversationId }) };
      for await (const { event } of client.chat(request, { signal })) {
        if (event !== undefined) {
          yield event;
        }
      }
    },
    stop: async (conversationId) => {
      await client.stopTurn({ conversationId });
    },
    events: async (conversationId, after) => {
      const found: Event[] = [];
      let pageToken = after === 0n ? "" : (lastPages.get(conversationId) ?? "");
      for (;;) {
        const page = await client.listEvents({ conversationId, pageSize, pageToken });
        found.push(...page.events.filter(({ sequence }) => sequence > after));
        lastPages.set(conversationId, pageToken);
        if (page.nextPageToken === "") {
          return found;
        }
        pageToken = page.nextPageToken;
      }
    },
    conversations: async () => {
      const { conversations } = await client.listConversations({ pageSize: maxConversations });
      return conversations.map(({ conversationId, handle, title, running, updatedAt }) => ({
        id: conversationId,
        handle,
        title,
        running,
        updatedAt: updatedAt === undefined ? 0 : timestampMs(updatedAt),
      }));
    },
  };
}
