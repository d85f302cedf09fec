/** One call of an approval as it would run: the device, the arguments, and each thing that it would act on. */

import type { PlannedTarget } from "@throwbar/es/pb/commands";
import { ItemStatus } from "@throwbar/es/pb/state";
import type { FunctionComponent } from "preact";
import { useState } from "preact/hooks";
import type { ApprovalCall } from "./approvals.js";
import { type Argument, argumentsOf, callTitle, wholeAction } from "./plan.js";
import { Foreign, Shown } from "./shown.js";
import { Named } from "./tool.js";
import { statusText } from "./words.js";

interface CallProps {
  readonly call: ApprovalCall;
  /** Its place among several, from one. */
  readonly numbered: number | undefined;
}

export const Call: FunctionComponent<CallProps> = ({ call, numbered }) => {
  const args = argumentsOf(call.proposed);
  const listed = new Set(call.targets.map(({ id }) => id));
  // A list of the ids that are shown as targets says nothing more.
  const told = args.filter(
    (arg) => (arg.isSet || arg.hidden) && !(arg.items.length > 0 && arg.items.every((id) => listed.has(id))),
  );
  return (
    <div class="call">
      {numbered !== undefined && (
        <h4>
          {numbered}. <Foreign text={callTitle(call)} />
        </h4>
      )}
      <Grave args={args} />
      {told.length > 0 && (
        <dl>
          {told.map((arg) => (
            <div key={arg.name}>
              <dt>{arg.label}</dt>
              <dd dir="ltr">
                <Foreign text={arg.items.length > 0 ? arg.items.join(", ") : arg.shown} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      {call.targets.length > 0 && <Targets targets={call.targets} />}
      <details class="letter">
        <summary>To the letter</summary>
        <pre>
          <Shown text={`${call.name} on ${call.deviceName} (${call.deviceId})\n${wholeAction(call.proposed)}`} />
        </pre>
      </details>
    </div>
  );
};

/** What flags that always need a person mean. */
const graveTexts: Record<string, string> = {
  force: "Pages that ask before they are left are not asked. What was typed in them is lost.",
};

/** A flag that is dangerous is the first thing that is read. */
export const Grave: FunctionComponent<{ readonly args: readonly Argument[] }> = ({ args }) => (
  <>
    {args
      .filter(({ grave }) => grave)
      .map((arg) => (
        <p key={arg.name} class="grave">
          <strong>{arg.label} is on.</strong> {graveTexts[arg.name] ?? "This cannot be taken back."}
        </p>
      ))}
  </>
);

const manyTargets = 10;

const Targets: FunctionComponent<{ readonly targets: readonly PlannedTarget[] }> = ({ targets }) => {
  const [all, setAll] = useState(false);
  const shown = all ? targets : targets.slice(0, manyTargets);
  return (
    <>
      <ul class="targets">
        {shown.map((target) => (
          <li key={target.id}>
            <TargetText target={target} />
          </li>
        ))}
      </ul>
      {shown.length < targets.length && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show all {targets.length}
        </button>
      )}
    </>
  );
};

export const TargetText: FunctionComponent<{ readonly target: PlannedTarget }> = ({ target }) => (
  <>
    <Named title={target.title} url={target.url} id={target.id} />
    {target.status !== ItemStatus.OK && target.status !== ItemStatus.UNSPECIFIED && (
      <small class="gone"> {statusText(target.status)}</small>
    )}
  </>
);
