/** A call that waits for a person: what exactly would run, and the answers to it. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Approval, ApprovalState } from "./approvals.js";
import { Decide } from "./decide.js";
import type { Inbox } from "./inbox.js";
import { callTitle, readable } from "./plan.js";
import { Call } from "./planned.js";
import { Foreign, Glyph, type Sign, useNow, useSource } from "./shown.js";
import type { ApprovalLine } from "./thread.js";
import { counted, duration, spoken } from "./words.js";

export interface CardProps {
  readonly approvalId: string;
  readonly inbox: Inbox;
  /** What the conversation says of it, where it is of one. */
  readonly line?: ApprovalLine;
  /** Who asks, in words; empty where that is plain. */
  readonly asker: string;
}

const stateNames: Record<ApprovalState, string> = {
  [ApprovalState.UNSPECIFIED]: "pending",
  [ApprovalState.PENDING]: "pending",
  [ApprovalState.APPROVED]: "approved",
  [ApprovalState.DENIED]: "denied",
  [ApprovalState.EXPIRED]: "expired",
  [ApprovalState.WITHDRAWN]: "withdrawn",
  [ApprovalState.VOID]: "void",
};

export const ApprovalCard: FunctionComponent<CardProps> = ({ approvalId, inbox, line, asker }) => {
  const { known, mine } = useSource(inbox);
  const [looked, setLooked] = useState(false);
  const card = useRef<HTMLElement>(null);
  /** Whether the focus was last seen in the card: an element that goes takes it away without a word. */
  const inside = useRef(false);
  const approval = known.get(approvalId);
  useEffect(() => {
    void inbox.load(approvalId).then(() => setLooked(true));
  }, [inbox, approvalId]);
  // Whichever says first that it has ended: the conversation or the feed of approvals, which knows best how.
  const told = line?.state ?? "pending";
  const fed = stateNames[approval?.state ?? ApprovalState.PENDING];
  const state = told === "pending" || (told === "resolved" && fed !== "pending") ? fed : told;
  const pending = state === "pending";
  useEffect(() => {
    // The buttons are gone; whoever was at them stays where they were.
    if (!pending && inside.current && document.activeElement === document.body) {
      card.current?.focus();
    }
  }, [pending]);
  const name = approval?.calls[0]?.name ?? line?.name ?? "";
  return (
    <section
      ref={card}
      class="approval"
      data-state={state}
      data-id={approvalId}
      tabIndex={-1}
      onFocusIn={() => {
        inside.current = true;
      }}
      onFocusOut={({ currentTarget, relatedTarget }) => {
        inside.current = relatedTarget === null || currentTarget.contains(relatedTarget as Node);
      }}
      aria-label={`${pending ? "Approval needed" : "Approval"}: ${spoken(name)}`}
    >
      {pending ? (
        <Pending
          approvalId={approvalId}
          approval={approval}
          looked={looked}
          name={name}
          line={line}
          inbox={inbox}
          asker={asker}
        />
      ) : (
        <Ended state={state} approval={approval} name={name} said={line?.said ?? ""} mine={mine.has(approvalId)} />
      )}
    </section>
  );
};

interface PendingProps extends Omit<CardProps, "line"> {
  readonly approval: Approval | undefined;
  readonly looked: boolean;
  readonly name: string;
  readonly line: ApprovalLine | undefined;
}

const Pending: FunctionComponent<PendingProps> = ({ approvalId, approval, looked, name, line, inbox, asker }) => {
  const calls = approval?.calls ?? [];
  const why = approval?.reason || line?.why || "";
  const known = calls.length > 0 && calls.every(({ proposed }) => readable(proposed));
  const [one] = calls;
  return (
    <>
      <header>
        <Glyph sign="waiting" />
        <h3>
          {calls.length > 1 ? (
            `${counted(calls.length, "call")}, one decision`
          ) : (
            <Foreign text={one === undefined ? spoken(name) : callTitle(one)} />
          )}
        </h3>
        <Countdown approval={approval} />
      </header>
      {asker !== "" && <p class="asker">Asked by {asker}.</p>}
      {why !== "" && (
        <p class="why">
          Why you are asked: <Foreign text={why} />
        </p>
      )}
      {approval !== undefined && known && <Decide approval={approval} inbox={inbox} />}
      {approval !== undefined && !known && (
        <>
          {calls.map((call) => (
            <Call key={call.commandId} call={call} numbered={undefined} />
          ))}
          <p class="trouble">This panel does not know all of this command, so it is not decided here.</p>
        </>
      )}
      {approval === undefined && looked && <p class="trouble">What it is about cannot be read just now.</p>}
      <p class="elsewhere">
        Also: <code>throwbar approvals approve {approvalId.slice(0, 8)}</code>
      </p>
    </>
  );
};

const slowMs = 30_000;
const fastMs = 1000;
const hourMs = 3_600_000;

/** How long there is to decide. It keeps its width while it counts. */
const Countdown: FunctionComponent<{ readonly approval: Approval | undefined }> = ({ approval }) => {
  const until = approval?.expiresAt === undefined ? undefined : timestampMs(approval.expiresAt);
  const now = useNow(until !== undefined && until - Date.now() < hourMs ? fastMs : slowMs);
  if (until === undefined) {
    return <span class="left" />;
  }
  const left = (until - now) / 1000;
  return (
    <span class="left" role="timer" aria-live="off" data-soon={left < 60}>
      {left > 0 ? `${duration(left)} left` : "time is up"}
    </span>
  );
};

const endSigns: Record<string, Sign> = { approved: "done", denied: "denied" };

/** How it ended, in words that tell a no from nobody's answer. */
export function endText(state: string, mine: boolean): string {
  switch (state) {
    case "approved":
      return mine ? "Approved by you" : "Approved";
    case "denied":
      return mine ? "Denied by you. Nothing ran" : "Denied. Nothing ran";
    case "expired":
      return "Nobody decided in time. It was not denied, and nothing ran";
    case "withdrawn":
      return "Not needed any more. Nothing ran";
    case "resolved":
      return "It does not wait any more";
    case "void":
      return "Does not count any more, because something has changed";
    default:
      return `It is ${state}`;
  }
}

interface EndedProps {
  readonly state: string;
  readonly approval: Approval | undefined;
  readonly name: string;
  readonly said: string;
  readonly mine: boolean;
}

const Ended: FunctionComponent<EndedProps> = ({ state, approval, name, said, mine }) => {
  const [one] = approval?.calls ?? [];
  const reason = approval?.decisionReason || said;
  const edited = approval?.calls.some((call) => call.edited !== undefined) ?? false;
  return (
    <p>
      <Glyph sign={endSigns[state] ?? "stopped"} />
      <span>
        <strong>{endText(state, mine)}</strong>
        {" · "}
        <Foreign text={one === undefined ? spoken(name) : callTitle(one)} />
        {edited && " · with changes"}
        {(approval?.rememberedRuleId ?? "") !== "" && " · remembered"}
        {reason !== "" && (
          <>
            {": "}
            <Foreign text={reason} most={300} />
          </>
        )}
      </span>
    </p>
  );
};
