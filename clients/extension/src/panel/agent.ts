/** The calls of the agent that the panel needs. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import {
  AgentService,
  ConversationFilter,
  ConversationStatus,
  Delivery,
  type Event,
  SendMode,
  type WatchConversationResponse,
} from "@throwbar/es/pb/agent";

export interface Model {
  readonly name: string;
  /** What to set, where no model is. */
  readonly hint: string;
}

export type Status = "idle" | "running" | "waiting" | "failed";

export interface Conversation {
  readonly id: string;
  /** The shortest prefix of the id that names it among the open ones, as the server makes it; empty if it is not open. */
  readonly handle: string;
  readonly title: string;
  readonly status: Status;
  /** Milliseconds since 1970, by the server's clock. */
  readonly updatedAt: number;
  /** The conversation whose agent started it; empty if a person did. */
  readonly parentId: string;
  /** Name of the agent's definition, if it was started from one. */
  readonly agent: string;
  /** How many messages wait in it. */
  readonly queued: number;
}

/** A message on its way. */
export interface Outgoing {
  /** Empty for a new one. */
  readonly conversationId: string;
  readonly text: string;
  /** Chosen here: a repeat says it once. */
  readonly messageId: string;
  /** Whether it enters a turn that runs, instead of waiting for its end. */
  readonly steer: boolean;
}

export interface Sent {
  readonly conversationId: string;
  /** Whether it waits for the end of a turn. */
  readonly waits: boolean;
  /** Number of the last event before it. */
  readonly sequence: bigint;
}

export interface Agent {
  model(): Promise<Model>;
  send(message: Outgoing): Promise<Sent>;
  /** All that is stored after a number, once and in order, and what comes then, until the signal or a fault. */
  follow(conversationId: string, after: bigint, signal: AbortSignal): AsyncIterable<WatchConversationResponse>;
  stop(conversationId: string): Promise<void>;
  /** The stored events after a number, oldest first. */
  events(conversationId: string, after: bigint): Promise<Event[]>;
  /** The conversations that were used last, the latest first: the open ones, or the archived ones. */
  conversations(archived: boolean): Promise<Conversation[]>;
  rename(conversationId: string, title: string): Promise<void>;
  archive(conversationId: string): Promise<void>;
  reopen(conversationId: string): Promise<void>;
  editQueued(conversationId: string, messageId: string, text: string): Promise<void>;
  removeQueued(conversationId: string, messageId: string): Promise<void>;
  /** All that a tool answered, also where the model was told only a part. */
  output(conversationId: string, callId: string): Promise<string>;
}

const pageSize = 200;
const maxConversations = 100;

const statuses: Record<ConversationStatus, Status> = {
  [ConversationStatus.UNSPECIFIED]: "idle",
  [ConversationStatus.IDLE]: "idle",
  [ConversationStatus.RUNNING]: "running",
  [ConversationStatus.WAITING]: "waiting",
  [ConversationStatus.FAILED]: "failed",
};

/** What a conversation does, also where a newer server says something else. */
export const statusOf = (status: ConversationStatus): Status => statuses[status] ?? "idle";

export function connectAgent(transport: Transport): Agent {
  const client = createClient(AgentService, transport);
  // Where the last page of a conversation began: whoever reads on need not read all of it again.
  const lastPages = new Map<string, string>();
  return {
    model: async () => {
      const { model, hint } = await client.getModel({});
      return { name: model, hint };
    },
    send: async ({ conversationId, text, messageId, steer }) => {
      const mode = steer ? SendMode.STEER : SendMode.QUEUE;
      const to = conversationId === "" ? {} : { conversationId };
      const sent = await client.send({ message: text, messageId, mode, ...to });
      const waits = sent.delivery === Delivery.QUEUED || sent.delivery === Delivery.SUPPRESSED;
      return { conversationId: sent.conversationId, sequence: sent.sequence, waits };
    },
    follow: (conversationId, after, signal) => client.watchConversation({ conversationId, after }, { signal }),
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
    conversations: async (archived) => {
      const filter = archived ? ConversationFilter.ARCHIVED : ConversationFilter.OPEN;
      const { conversations } = await client.listConversations({ pageSize: maxConversations, filter });
      return conversations.map(
        ({ conversationId, handle, title, running, status, updatedAt, parentId, agent, queued }) => ({
          id: conversationId,
          handle,
          title,
          status: running && statusOf(status) === "idle" ? "running" : statusOf(status),
          updatedAt: updatedAt === undefined ? 0 : timestampMs(updatedAt),
          parentId,
          agent,
          queued,
        }),
      );
    },
    rename: async (conversationId, title) => {
      await client.updateConversation({ conversationId, title });
    },
    archive: async (conversationId) => {
      await client.archiveConversation({ conversationId });
    },
    reopen: async (conversationId) => {
      await client.reopenConversation({ conversationId });
    },
    editQueued: async (conversationId, messageId, message) => {
      await client.editQueued({ conversationId, messageId, message });
    },
    removeQueued: async (conversationId, messageId) => {
      await client.removeQueued({ conversationId, messageId });
    },
    output: async (conversationId, callId) => {
      let text = "";
      let offset = 0n;
      do {
        const piece = await client.getToolOutput({ conversationId, callId, offset });
        text += piece.text;
        offset = piece.nextOffset > offset ? piece.nextOffset : 0n;
      } while (offset > 0n);
      return text;
    },
  };
}
