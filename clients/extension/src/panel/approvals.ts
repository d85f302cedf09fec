/** The calls about approvals that the panel needs. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { type Approval, ApprovalService, type ApproveSchema } from "@throwbar/es/pb/approvals";

export { type Approval, type ApprovalCall, ApprovalState } from "@throwbar/es/pb/approvals";

/** A yes beside the hash of what was shown: with edits, and whether to remember it. */
export type Approving = Pick<MessageInitShape<typeof ApproveSchema>, "edits" | "remember">;

export type Verdict =
  | ({ readonly yes: true; readonly reason: string } & Approving)
  | { readonly yes: false; readonly reason: string };

export interface Decided {
  /** The approval as it is now, where there still is one. */
  readonly approval: Approval | undefined;
  /** Why the decision did not count; empty if it did. */
  readonly problem: string;
}

export interface Watched {
  /** Undefined in a frame that only shows that the stream is alive. */
  readonly approval?: Approval | undefined;
}

export interface Approvals {
  get(approvalId: string): Promise<Approval>;
  /** All that wait for a person, newest first. */
  pending(): Promise<Approval[]>;
  /** Decides what was shown: its hash goes with a yes. */
  decide(approval: Approval, verdict: Verdict): Promise<Decided>;
  /**
   * All that is pending, and what changes from now on, until the signal or a fault. While somebody follows, the server has a
   * person to ask.
   */
  watch(signal: AbortSignal): AsyncIterable<Watched>;
}

const pageSize = 100;

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
    pending: async () => {
      const found: Approval[] = [];
      let pageToken = "";
      do {
        const page = await client.listApprovals({ pendingOnly: true, pageSize, pageToken });
        found.push(...page.approvals);
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      return found;
    },
    decide: async ({ approvalId, hash }, verdict) => {
      const { reason } = verdict;
      const value = verdict.yes
        ? {
            case: "approve" as const,
            value: {
              hash,
              reason,
              edits: verdict.edits ?? [],
              ...(verdict.remember && { remember: verdict.remember }),
            },
          }
        : { case: "deny" as const, value: { reason } };
      const { outcomes } = await client.decide({ decisions: [{ approvalId, verdict: value }] });
      return { approval: outcomes[0]?.approval, problem: outcomes[0]?.error?.message ?? "" };
    },
    watch: (signal) => client.watchApprovals({}, { signal }),
  };
}
