/** The calls of the agent that the panel needs. */
import { createClient, type Transport } from "@connectrpc/connect";
import { AgentService, type Event } from "@throwbar/es/pb/agent";

export interface Model {
  readonly name: string;
  /** What to set, where no model is. */
  readonly hint: string;
}

export interface Agent {
  model(): Promise<Model>;
  chat(conversationId: string, message: string, signal: AbortSignal): AsyncIterable<Event>;
  stop(conversationId: string): Promise<void>;
  /** The stored events after a number, oldest first. */
  events(conversationId: string, after: bigint): Promise<Event[]>;
}

const pageSize = 1000;

export function connectAgent(transport: Transport): Agent {
  const client = createClient(AgentService, transport);
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
      let pageToken = "";
      do {
        const page = await client.listEvents({ conversationId, pageSize, pageToken });
        found.push(...page.events.filter(({ sequence }) => sequence > after));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      return found;
    },
  };
}
