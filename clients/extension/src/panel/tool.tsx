/** One tool call: a line that says what was done where and how much, and unfolds to what was asked and what became of each thing. */
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

export const Tool: FunctionComponent<{ readonly line: ToolLine; readonly known: () => Known }> = ({ line, known }) => {
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
      {open && <Body activity={activity} line={line} />}
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

const Body: FunctionComponent<{ readonly activity: Activity; readonly line: ToolLine }> = ({ activity, line }) => (
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
  </div>
);

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
