/** Whether a decision is remembered, for what, and the rule that would be made of it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { RememberSchema } from "@throwbar/es/pb/approvals";
import type { FunctionComponent } from "preact";
import { useId } from "preact/hooks";
import type { ApprovalCall } from "./approvals.js";
import { type Argument, argumentsOf, exactly, sitePattern } from "./plan.js";
import { Foreign } from "./shown.js";
import { spoken } from "./words.js";

export interface Choice {
  readonly how: "ask" | "conversation" | "always";
  /** Patterns that take the place of exact arguments, by path. */
  readonly patterns: Readonly<Record<string, string>>;
  readonly anyDevice: boolean;
}

export const askAgain: Choice = { how: "ask", patterns: {}, anyDevice: false };

export function asRemember({ how, patterns, anyDevice }: Choice): MessageInitShape<typeof RememberSchema> | undefined {
  if (how === "ask") {
    return undefined;
  }
  const given = Object.entries(patterns).map(([path, pattern]) => ({ path, pattern }));
  return { conversationOnly: how === "conversation", anyDevice, arguments: given };
}

/** The path that stands for the addresses of the tabs that a command acts on. */
const targetUrl = "target.url";

interface Props {
  /** The call as it would run. */
  readonly call: ApprovalCall;
  readonly choice: Choice;
  readonly onChange: (choice: Choice) => void;
}

export const Remembering: FunctionComponent<Props & { readonly ofConversation: boolean }> = (props) => {
  const { call, ofConversation, choice, onChange } = props;
  const group = useId();
  const option = (how: Choice["how"], text: string) => (
    <label class="check">
      <input type="radio" name={group} checked={choice.how === how} onChange={() => onChange({ ...choice, how })} />
      <span>{text}</span>
    </label>
  );
  return (
    <details class="remember">
      <summary>If I approve: {choice.how === "ask" ? "ask me again next time" : "do not ask again"}</summary>
      <fieldset>
        <legend class="spoken">Next time</legend>
        {option("ask", "Ask me again next time")}
        {ofConversation && option("conversation", "Do not ask again in this conversation")}
        {option("always", "Do not ask whoever asked this again, for 30 days")}
      </fieldset>
      {choice.how !== "ask" && <Rule call={call} choice={choice} onChange={onChange} />}
    </details>
  );
};

/** What would be allowed from then on, argument by argument. */
const Rule: FunctionComponent<Props> = ({ call, choice, onChange }) => {
  const args = argumentsOf(call.proposed);
  const site = sitePattern(call.targets);
  const pattern = (path: string, value: string | undefined) => {
    const others = Object.entries(choice.patterns).filter(([each]) => each !== path);
    onChange({ ...choice, patterns: Object.fromEntries(value === undefined ? others : [...others, [path, value]]) });
  };
  return (
    <div class="rule">
      <p>
        {spoken(call.name)} will run without asking on{" "}
        {choice.anyDevice ? "any device" : <Foreign text={call.deviceName || call.deviceId} />}, where:
      </p>
      {call.targets.length > 0 && args.some(({ tabs }) => tabs) && (
        <Pattern
          label="The tabs' addresses"
          exact="are these very tabs"
          start={site ?? "https://*"}
          value={choice.patterns[targetUrl]}
          onChange={(value) => pattern(targetUrl, value)}
        />
      )}
      {args
        .filter((arg) => arg.editor === "text" && arg.isSet && !arg.tabs)
        .map((arg) => (
          <Pattern
            key={arg.name}
            label={arg.label}
            exact={`is ${arg.shown}`}
            start={exactly(arg.shown)}
            value={choice.patterns[arg.name]}
            onChange={(value) => pattern(arg.name, value)}
          />
        ))}
      <Others args={args} />
      <label class="check">
        <input
          type="checkbox"
          checked={choice.anyDevice}
          onChange={({ currentTarget }) => onChange({ ...choice, anyDevice: currentTarget.checked })}
        />
        <span>On any device, not only this one</span>
      </label>
    </div>
  );
};

const Others: FunctionComponent<{ readonly args: readonly Argument[] }> = ({ args }) => {
  const rest = args.filter((arg) => !arg.tabs && arg.editor !== "text" && arg.editor !== "list");
  return rest.length === 0 ? null : (
    <ul>
      {rest.map((arg) => (
        <li key={arg.name}>
          {arg.label} <Foreign text={arg.isSet ? `is ${arg.shown}` : "is not set"} />
        </li>
      ))}
    </ul>
  );
};

interface PatternProps {
  readonly label: string;
  /** What holds where no pattern is given. */
  readonly exact: string;
  /** The pattern to begin with. */
  readonly start: string;
  readonly value: string | undefined;
  readonly onChange: (value: string | undefined) => void;
}

const Pattern: FunctionComponent<PatternProps> = ({ label, exact, start, value, onChange }) => {
  const id = useId();
  return (
    <p class="pattern">
      <label class="check">
        <input
          type="checkbox"
          checked={value !== undefined}
          onChange={({ currentTarget }) => onChange(currentTarget.checked ? start : undefined)}
        />
        <span>
          {label} {value === undefined ? <Foreign text={exact} most={120} /> : "match"}
        </span>
      </label>
      {value !== undefined && (
        <>
          <label class="spoken" for={id}>
            Pattern for {label}
          </label>
          <input
            id={id}
            spellcheck={false}
            value={value}
            onInput={({ currentTarget }) => onChange(currentTarget.value)}
          />
          <small>* stands for any text. End a host with a slash.</small>
        </>
      )}
    </p>
  );
};
