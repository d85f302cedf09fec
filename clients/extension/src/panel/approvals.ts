/** The calls about approvals that the panel needs. */
import { createClient, type Transport } from "@connectrpc/connect";
import { type Approval, ApprovalService } from "@throwbar/es/pb/approvals";

export type { Approval } from "@throwbar/es/pb/approvals";

export interface Approvals {
  get(approvalId: string): Promise<Approval>;
  /** Decides what was shown: the hash goes with a yes. Returns why it did not count; empty if it did. */
  decide(approval: Approval, yes: boolean, reason: string): Promise<string>;
  /** Stays on the feed until the signal: while somebody does, the server has a person to ask. */
  follow(signal: AbortSignal): Promise<void>;
}

const againMs = 2000;

export function connectApprovals(transport: Transport): Approvals {
  const client = createClient(ApprovalService, transport);
  return {
    get: async (approvalId) => {
      const { approval } = await client.getApproval({ approvalId });
      if (approval === undefined) {
        throw new Error("the server sent no approval");
      }
      return approval;
    },
    decide: async ({ approvalId, hash }, yes, reason) => {
      const verdict = yes
        ? { case: "approve" as const, value: { hash, reason } }
        : { case: "deny" as const, value: { reason } };
      const { outcomes } = await client.decide({ decisions: [{ approvalId, verdict }] });
      return outcomes[0]?.error?.message ?? "";
    },
    follow: async (signal) => {
      while (!signal.aborted) {
        try {
          for await (const _ of client.watchApprovals({}, { signal })) {
            // The conversation has its own events of what is asked and decided.
          }
        } catch {
          // It is opened again.
        }
        if (!signal.aborted) {
          await new Promise((resolve) => setTimeout(resolve, againMs));
        }
      }
    },
  };
}
