/** The answers to an approval: yes, no with a reason, yes with changes, and whether to ask again. */
import type { FunctionComponent } from "preact";
import { useState } from "preact/hooks";
import type { Approval, ApprovalCall, Approving } from "./approvals.js";
import { EditCall } from "./edit.js";
import type { Inbox } from "./inbox.js";
import { argumentsOf, type Changes, withChanges } from "./plan.js";
import { Call } from "./planned.js";
import { askAgain, asRemember, type Choice, Remembering } from "./remember.js";
import { Foreign } from "./shown.js";

type AllChanges = Readonly<Record<string, Changes>>;

interface Draft {
  /** By command; undefined while nothing is edited. */
  readonly changes: AllChanges | undefined;
  readonly choice: Choice;
  readonly reason: string;
}

/** What goes with a yes, or why it cannot go. */
function approving(
  approval: Approval,
  { changes, choice }: Draft,
): { readonly with: Approving; readonly problem: string } {
  const edits: { commandId: string; action: NonNullable<Approval["calls"][number]["proposed"]> }[] = [];
  for (const { commandId, proposed } of approval.calls) {
    const own = changes?.[commandId];
    if (proposed === undefined || own === undefined || Object.keys(own).length === 0) {
      continue;
    }
    const { action, problem } = withChanges(proposed, own);
    if (problem !== "") {
      return { with: {}, problem };
    }
    edits.push({ commandId, action });
  }
  const remember = asRemember(choice);
  return { with: { edits, ...(remember && { remember }) }, problem: "" };
}

export const Decide: FunctionComponent<{ readonly approval: Approval; readonly inbox: Inbox }> = ({
  approval,
  inbox,
}) => {
  const [draft, setDraft] = useState<Draft>({ changes: undefined, choice: askAgain, reason: "" });
  const [problem, setProblem] = useState("");
  const [sent, setSent] = useState(false);
  const change = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }));
  const editing = draft.changes !== undefined;
  const changed = Object.values(draft.changes ?? {}).some((each) => Object.keys(each).length > 0);
  const send = async (yes: boolean) => {
    const made = approving(approval, draft);
    if (yes && made.problem !== "") {
      setProblem(made.problem);
      return;
    }
    setSent(true);
    setProblem("");
    const { reason } = draft;
    const why = await inbox.decide(approval, yes ? { yes, reason, ...made.with } : { yes, reason });
    setProblem(why);
    setSent(why === "");
  };
  const several = approval.calls.length > 1;
  const [first] = approval.calls;
  return (
    <>
      {approval.calls.map((call, at) =>
        editing ? (
          <EditCall
            key={call.commandId}
            call={call}
            numbered={several ? at + 1 : undefined}
            changes={draft.changes?.[call.commandId] ?? {}}
            onChange={(own) => change({ changes: { ...draft.changes, [call.commandId]: own } })}
          />
        ) : (
          <Call key={call.commandId} call={call} numbered={several ? at + 1 : undefined} />
        ),
      )}
      <div class="decide">
        {first !== undefined && !several && (
          <Remembering
            call={asEdited(first, draft.changes?.[first.commandId])}
            ofConversation={approval.conversationId !== ""}
            choice={draft.choice}
            onChange={(choice) => change({ choice })}
          />
        )}
        <label>
          Reason, for whoever asked <small>(optional)</small>
          <input
            class="reason"
            maxLength={1024}
            value={draft.reason}
            onInput={(event) => change({ reason: event.currentTarget.value })}
          />
        </label>
        <div class="buttons">
          {approval.calls.some(editable) && (
            <button
              type="button"
              class="edit"
              disabled={sent}
              onClick={() => change({ changes: editing ? undefined : {} })}
            >
              {editing ? "Undo changes" : "Edit"}
            </button>
          )}
          <button type="button" class="deny" disabled={sent} onClick={() => void send(false)}>
            Deny
          </button>
          <button type="button" class="approve primary" disabled={sent} onClick={() => void send(true)}>
            {changed ? "Approve with changes" : "Approve"}
          </button>
        </div>
        {problem !== "" && (
          <p class="trouble" role="alert">
            <Foreign text={problem} />
          </p>
        )}
      </div>
    </>
  );
};

/** The call as it would run: what is remembered is that. */
function asEdited(call: ApprovalCall, changes: Changes | undefined): ApprovalCall {
  if (call.proposed === undefined || changes === undefined) {
    return call;
  }
  const { action } = withChanges(call.proposed, changes);
  const kept = new Set(argumentsOf(action).flatMap(({ items }) => items));
  const targets = kept.size === 0 ? call.targets : call.targets.filter(({ id }) => kept.has(id));
  return { ...call, proposed: action, targets };
}

const editable = ({ proposed }: Approval["calls"][number]) =>
  argumentsOf(proposed).some(({ editor }) => editor !== "none");
