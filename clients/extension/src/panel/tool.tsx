/** One tool call: a line that says what was done where and how much, and unfolds to what was asked and what became of each thing. */
import { callText } from "@throwbar/es/errors";
import type { FunctionComponent } from "preact";
import { useState } from "preact/hooks";
import { type Activity, describe, type Known, type Row } from "./activity.js";
import { Foreign, Glyph, Shown, type Sign, Spoken } from "./shown.js";
import { type ToolLine, unfenced } from "./thread.js";

const signs: Record<ToolLine["outcome"], Sign> = {
  running: "running",
  waiting: "waiting",
  stopped: "stopped",
  succeeded: "done",
  failed: "failed",
  denied: "denied",
};

const words: Record<ToolLine["outcome"], string> = {
  running: "running…",
  waiting: "waits for you",
  stopped: "stopped",
  succeeded: "",
  failed: "failed",
  denied: "denied",
};

interface ToolProps {
  readonly line: ToolLine;
  readonly known: () => Known;
  /** Asks for all that the tool answered. */
  readonly output: () => Promise<string>;
}

export const Tool: FunctionComponent<ToolProps> = ({ line, known, output }) => {
  const [open, setOpen] = useState(false);
  const activity = describe(line.name, line.arguments, line.content, known());
  return (
    <details
      class="tool"
      data-name={line.name}
      data-outcome={line.outcome}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <Glyph sign={signs[line.outcome]} />
        <span class="what">
          <Headline activity={activity} line={line} />
        </span>
      </summary>
      {open && <Body activity={activity} line={line} output={output} />}
    </details>
  );
};

const Headline: FunctionComponent<{ readonly activity: Activity; readonly line: ToolLine }> = ({ activity, line }) => {
  const { title, device, facts, problems, edited } = activity;
  const state = [words[line.outcome], ...problems.map((each) => each.title)].filter((each) => each !== "");
  const said = line.outcome === "succeeded" ? facts : facts.filter((each) => !each.startsWith("0 "));
  return (
    <>
      <strong>{title}</strong>
      {device !== "" && (
        <>
          {" · "}
          <Foreign text={device} most={40} />
        </>
      )}
      {said.length > 0 && ` · ${said.join(", ")}`}
      {edited && " · changed by a person"}
      {state.length > 0 ? <em> · {state.join(": ")}</em> : <Spoken>: done</Spoken>}
    </>
  );
};

interface BodyProps extends Omit<ToolProps, "known"> {
  readonly activity: Activity;
}

const Body: FunctionComponent<BodyProps> = ({ activity, line, output }) => (
  <div class="fold">
    {activity.problems.map((problem, at) => (
      <p key={at} class="trouble">
        <strong>{problem.title}</strong>: <Foreign text={problem.message} /> {problem.advice}
      </p>
    ))}
    {activity.personSaid !== "" && (
      <p>
        A person said: <Foreign text={activity.personSaid} />
      </p>
    )}
    {activity.rows.length > 0 && <Rows rows={activity.rows} />}
    <h3>Asked for</h3>
    <pre>
      <Shown text={pretty(line.arguments)} />
    </pre>
    {line.repairs.length > 0 && (
      <p>
        Mended in the model's arguments: <Foreign text={line.repairs.join("; ")} />
      </p>
    )}
    {line.content !== "" && (
      <>
        <h3>What the agent was told</h3>
        <pre class="told">
          <Shown text={unfenced(line.content)} />
        </pre>
      </>
    )}
    {line.wholeBytes > 0 && <Whole bytes={line.wholeBytes} output={output} />}
  </div>
);

/** All that the tool answered, where the model was told a part: it is asked for only when somebody wants to see it. */
const Whole: FunctionComponent<{ readonly bytes: number; readonly output: () => Promise<string> }> = ({
  bytes,
  output,
}) => {
  const [text, setText] = useState<string>();
  const [problem, setProblem] = useState("");
  const ask = () => {
    setProblem("");
    output().then(setText, (error: unknown) => setProblem(callText(error)));
  };
  if (text !== undefined) {
    return (
      <>
        <h3>All that was answered</h3>
        <pre class="whole">
          <Shown text={unfenced(text)} />
        </pre>
      </>
    );
  }
  return (
    <p>
      The agent was told a part.{" "}
      <button type="button" class="quiet" onClick={ask}>
        Show all {Math.ceil(bytes / 1024)} KiB
      </button>
      {problem !== "" && <span role="alert"> {problem}</span>}
    </p>
  );
};

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 1);
  } catch {
    return json;
  }
}

const manyRows = 20;

const Rows: FunctionComponent<{ readonly rows: readonly Row[] }> = ({ rows }) => {
  const [all, setAll] = useState(false);
  // What did not go as asked comes first.
  const sorted = [...rows.filter(({ ok }) => !ok), ...rows.filter(({ ok }) => ok)];
  const shown = all ? sorted : sorted.slice(0, manyRows);
  return (
    <>
      <table>
        <thead>
          <tr>
            <th scope="col">On</th>
            <th scope="col">What happened</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={row.id} data-ok={row.ok}>
              <td>
                <Named title={row.title} url={row.url} id={row.id} />
              </td>
              <td>
                {row.status}
                {row.detail !== "" && (
                  <>
                    {": "}
                    <Foreign text={row.detail} />
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < sorted.length && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show all {sorted.length}
        </button>
      )}
    </>
  );
};

/** A thing by its title and address where those are known, else by its id. */
export const Named: FunctionComponent<{ readonly title: string; readonly url: string; readonly id: string }> = ({
  title,
  url,
  id,
}) => (
  <span class="named">
    {title !== "" && <Foreign text={title} most={120} />}
    <small dir="ltr">
      <Foreign text={url !== "" ? url : id} most={300} />
    </small>
  </span>
);
