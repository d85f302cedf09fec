/** The arguments of a call as a form, made from the contract: single targets are left out, texts and choices are changed. */
import type { ComponentChildren, FunctionComponent } from "preact";
import { useId } from "preact/hooks";
import type { ApprovalCall } from "./approvals.js";
import { type Argument, argumentsOf, type Changes, callTitle, withChanges } from "./plan.js";
import { Grave, TargetText } from "./planned.js";
import { Foreign } from "./shown.js";
import { visible } from "./text.js";

interface EditProps {
  readonly call: ApprovalCall;
  readonly numbered: number | undefined;
  readonly changes: Changes;
  readonly onChange: (changes: Changes) => void;
}

export const EditCall: FunctionComponent<EditProps> = ({ call, numbered, changes, onChange }) => {
  const args = argumentsOf(call.proposed);
  const set = (name: string, value: Changes[string]) => onChange({ ...changes, [name]: value });
  const reset = (name: string) => onChange(Object.fromEntries(Object.entries(changes).filter(([key]) => key !== name)));
  const result = call.proposed === undefined ? undefined : withChanges(call.proposed, changes);
  return (
    <fieldset class="call edit">
      <legend>
        {numbered !== undefined && `${numbered}. `}Change <Foreign text={callTitle(call)} />
      </legend>
      <Grave args={argumentsOf(result?.action)} />
      {args.map((arg) => (
        <Edited key={arg.name} arg={arg} call={call} changes={changes} set={set} reset={reset} />
      ))}
      {result !== undefined && result.problem !== "" && <p class="trouble">{result.problem}</p>}
    </fieldset>
  );
};

interface EditedProps {
  readonly arg: Argument;
  readonly call: ApprovalCall;
  readonly changes: Changes;
  readonly set: (name: string, value: Changes[string]) => void;
  readonly reset: (name: string) => void;
}

const Edited: FunctionComponent<EditedProps> = ({ arg, call, changes, set, reset }) => {
  const changed = Object.hasOwn(changes, arg.name);
  const given = changes[arg.name];
  if (arg.editor === "list") {
    const kept = changed && Array.isArray(given) ? (given as readonly string[]) : arg.items;
    return <Items arg={arg} call={call} kept={kept} onChange={(items) => set(arg.name, items)} />;
  }
  const now = changed ? (typeof given === "string" ? given : "") : arg.shown;
  const change = (value: string, none: boolean) => {
    if (value === arg.shown) {
      reset(arg.name);
    } else {
      set(arg.name, none ? undefined : value);
    }
  };
  switch (arg.editor) {
    case "flag":
      return <Select arg={arg} value={now} values={["yes", "no"]} onChange={change} />;
    case "choice":
      return <Select arg={arg} value={now} values={arg.choices} onChange={change} />;
    case "text":
    case "number":
      return (
        <Labelled arg={arg}>
          {(id) => (
            <>
              <input
                id={id}
                inputMode={arg.editor === "number" ? "numeric" : "text"}
                spellcheck={false}
                value={now}
                onInput={({ currentTarget: { value } }) => change(value, value === "" && arg.optional)}
              />
              {visible(now) !== now && (
                <small>
                  With characters that cannot be seen: <Foreign text={now} />
                </small>
              )}
            </>
          )}
        </Labelled>
      );
    default:
      return arg.isSet || arg.hidden ? (
        <p>
          {arg.label}: {arg.hidden ? "hidden, stays as it was asked for" : <Foreign text={arg.shown} />}{" "}
          <small>(cannot be changed here)</small>
        </p>
      ) : null;
  }
};

const Labelled: FunctionComponent<{ readonly arg: Argument; readonly children: (id: string) => ComponentChildren }> = ({
  arg,
  children,
}) => {
  const id = useId();
  return (
    <p>
      <label for={id}>{arg.label}</label>
      {children(id)}
    </p>
  );
};

interface SelectProps {
  readonly arg: Argument;
  readonly value: string;
  readonly values: readonly string[];
  readonly onChange: (value: string, none: boolean) => void;
}

const Select: FunctionComponent<SelectProps> = ({ arg, value, values, onChange }) => (
  <Labelled arg={arg}>
    {(id) => (
      <select
        id={id}
        value={value}
        onChange={({ currentTarget }) => onChange(currentTarget.value, currentTarget.value === "")}
      >
        {(arg.optional || !arg.isSet) && <option value="">not set</option>}
        {values.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    )}
  </Labelled>
);

interface ItemsProps {
  readonly arg: Argument;
  readonly call: ApprovalCall;
  readonly kept: readonly string[];
  readonly onChange: (items: readonly string[]) => void;
}

const Items: FunctionComponent<ItemsProps> = ({ arg, call, kept, onChange }) => {
  const targets = new Map(call.targets.map((target) => [target.id, target]));
  const keeps = new Set(kept);
  return (
    <fieldset class="items">
      <legend>
        {arg.label}: {kept.length} of {arg.items.length}
      </legend>
      <p class="all">
        <button type="button" class="quiet" onClick={() => onChange(arg.items)}>
          All
        </button>
        <button type="button" class="quiet" onClick={() => onChange([])}>
          None
        </button>
      </p>
      {arg.items.map((id) => {
        const target = targets.get(id);
        return (
          <label key={id} class="check">
            <input
              type="checkbox"
              checked={keeps.has(id)}
              onChange={({ currentTarget: { checked } }) =>
                onChange(arg.items.filter((each) => (each === id ? checked : keeps.has(each))))
              }
            />
            <span>{target === undefined ? <Foreign text={id} /> : <TargetText target={target} />}</span>
          </label>
        );
      })}
    </fieldset>
  );
};
