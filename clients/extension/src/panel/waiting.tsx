/** Everything that waits for the person, wherever it was asked: other conversations, the command line, programs. */
import type { FunctionComponent } from "preact";
import { useRef } from "preact/hooks";
import type { Conversation } from "./agent.js";
import { ApprovalCard } from "./approval.js";
import { type Approval, ApprovalState } from "./approvals.js";
import type { Inbox } from "./inbox.js";
import { useSource } from "./shown.js";
import { short } from "./text.js";

interface WaitingProps {
  readonly inbox: Inbox;
  readonly conversations: readonly Conversation[];
  readonly current: string;
  readonly onShow: (conversation: string) => void;
}

export const Waiting: FunctionComponent<WaitingProps> = ({ inbox, conversations, current, onShow }) => {
  const { pending, known, mine } = useSource(inbox);
  // What was decided here stays in sight with how it ended, until the sheet is closed.
  const before = useRef(mine);
  const decided = [...known.values()].filter(
    ({ approvalId, state }) =>
      mine.has(approvalId) && !before.current.has(approvalId) && state !== ApprovalState.PENDING,
  );
  return (
    <div class="waiting">
      {pending.length === 0 && <p>Nothing waits for you.</p>}
      {pending.map((approval) => (
        <div key={approval.approvalId}>
          <ApprovalCard
            approvalId={approval.approvalId}
            inbox={inbox}
            asker={askerOf(approval, conversations, current)}
          />
          {approval.conversationId !== "" && approval.conversationId !== current && (
            <button type="button" class="quiet" onClick={() => onShow(approval.conversationId)}>
              Show that conversation
            </button>
          )}
        </div>
      ))}
      {decided.map(({ approvalId }) => (
        <ApprovalCard key={approvalId} approvalId={approvalId} inbox={inbox} asker="" />
      ))}
    </div>
  );
};

/** Who asks: this or another conversation, or a program with a token. */
function askerOf(
  { conversationId, principal }: Approval,
  conversations: readonly Conversation[],
  current: string,
): string {
  if (conversationId === "") {
    return `a program or the command line, with the token ${principal.slice(0, 8)}`;
  }
  if (conversationId === current) {
    return "this conversation";
  }
  const found = conversations.find(({ id }) => id === conversationId);
  return found === undefined
    ? `the conversation ${conversationId.slice(0, 8)}`
    : `the conversation ${found.handle} “${short(found.title, 60)}”`;
}
