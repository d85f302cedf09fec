/** A call that waits for a person, and the buttons to decide it. */
import { toJson } from "@bufbuild/protobuf";
import { ActionSchema } from "@throwbar/es/pb/command";
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Approval } from "./approvals.js";
import type { Chat } from "./chat.js";
import type { ApprovalLine } from "./thread.js";

export const ApprovalCard: FunctionComponent<{ readonly line: ApprovalLine; readonly chat: Chat }> = ({
  line,
  chat,
}) => {
  const [shown, setShown] = useState<Approval>();
  const pending = line.state === "pending";
  useEffect(() => {
    if (pending) {
      void chat.approval(line.approvalId).then(setShown);
    }
  }, [chat, line.approvalId, pending]);
  return (
    <section class="approval" data-state={line.state} aria-label={`Approval of ${line.name}`}>
      <p>
        {line.name} {pending ? "waits for approval" : line.state}
        {line.said === "" ? "" : `: ${line.said}`}
      </p>
      {pending && <p>{line.why}</p>}
      {pending && shown !== undefined && <Calls approval={shown} />}
      {pending && shown !== undefined && readable(shown) && <Decide approval={shown} chat={chat} />}
      {pending && (
        <p class="elsewhere">
          Or decide with: <code>throwbar approvals approve {line.approvalId}</code>
        </p>
      )}
    </section>
  );
};

/** Whether this panel knows every command of it: what cannot be shown is not decided here. */
const readable = (approval: Approval) => approval.calls.every(({ proposed }) => proposed?.kind.case !== undefined);

/** Everything that a decision binds: the arguments, and what they would act on. */
const Calls: FunctionComponent<{ readonly approval: Approval }> = ({ approval }) => (
  <>
    {approval.calls.map((call) => (
      <details key={call.commandId} open={call.targets.length <= 10}>
        <summary>
          {call.name} on {call.deviceName || call.deviceId}
          {call.targets.length > 0 && `: ${call.targets.length} targets`}
        </summary>
        <ul>
          {call.targets.map((target) => (
            <li key={target.id}>
              {target.title} <small>{target.url || target.id}</small>
            </li>
          ))}
        </ul>
        <pre>
          {call.proposed === undefined ? "" : JSON.stringify(toJson(ActionSchema, call.proposed), undefined, 1)}
        </pre>
      </details>
    ))}
  </>
);

const Decide: FunctionComponent<{ readonly approval: Approval; readonly chat: Chat }> = ({ approval, chat }) => {
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState("");
  const [sent, setSent] = useState(false);
  const decide = async (yes: boolean) => {
    setSent(true);
    const why = await chat.decide(approval, yes, reason);
    setProblem(why);
    setSent(why === "");
  };
  return (
    <div class="decide">
      <input
        aria-label="Reason"
        placeholder="Reason (optional)"
        maxLength={1024}
        value={reason}
        onInput={(event) => setReason(event.currentTarget.value)}
      />
      <button type="button" class="approve" disabled={sent} onClick={() => void decide(true)}>
        Approve
      </button>
      <button type="button" class="deny" disabled={sent} onClick={() => void decide(false)}>
        Deny
      </button>
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
};
