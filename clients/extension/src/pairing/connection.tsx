/** The connection on the settings page: how it is, what can be done about it, and the pause. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { LinkState, LinkStatus } from "../bridge/messages.js";
import { restartLink, setPaused, stateTexts, statusNote } from "../bridge/status.js";
import type { MessagePort } from "../platform/port.js";

interface ConnectionParts {
  readonly status: LinkStatus | undefined;
  readonly messages: MessagePort;
}

/** What a person can ask for in a state, beside waiting. */
const wishes: Readonly<Partial<Record<LinkState, string>>> = {
  waiting: "Try now",
  offline: "Try now",
  refused: "Try now",
  replaced: "Connect this browser again",
};

export const Connection: FunctionComponent<ConnectionParts> = ({ status, messages }) => {
  const state = status?.state ?? "connecting";
  const wish = wishes[state];
  return (
    <section aria-labelledby="connection">
      <h2 id="connection">Connection</h2>
      <p>
        <span id="state" role="status" data-state={state}>
          {stateTexts[state]}
        </span>{" "}
        {status?.server && (
          <span id="who">
            {status.name}, at {status.server}.{" "}
          </span>
        )}
        {status && <Note status={status} />} {status?.detail}
      </p>
      {state === "replaced" && (
        <p>
          Two browsers with one pairing cannot be told apart, so only the newer one stays connected. If this profile is
          a copy of another one, pair it anew below: then it is a device of its own.
        </p>
      )}
      {wish && (
        <button id="restart" type="button" onClick={() => void restartLink(messages)}>
          {wish}
        </button>
      )}
      {state !== "unpaired" && state !== "revoked" && <PauseSwitch paused={status?.paused} messages={messages} />}
    </section>
  );
};

/** Counts down to the next attempt. */
const Note: FunctionComponent<{ readonly status: LinkStatus }> = ({ status }) => {
  const [now, setNow] = useState(Date.now());
  const { retryAt } = status;
  useEffect(() => {
    setNow(Date.now());
    const timer = retryAt === undefined ? undefined : setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [retryAt]);
  // Not part of the live region: nobody wants every second read out.
  return <span id="note">{statusNote(status, now)}</span>;
};

const PauseSwitch: FunctionComponent<{ readonly paused: boolean | undefined; readonly messages: MessagePort }> = ({
  paused,
  messages,
}) => {
  const [problem, setProblem] = useState("");
  const change = async (input: HTMLInputElement) => {
    const wanted = input.checked;
    // What is shown is what is so: the status says when it has changed.
    input.checked = paused === true;
    try {
      await setPaused(messages, wanted);
      setProblem("");
    } catch (error) {
      setProblem(`This could not be changed: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  return (
    <>
      <p>
        <label class="choice" for="paused">
          <input
            id="paused"
            type="checkbox"
            checked={paused === true}
            disabled={paused === undefined}
            aria-describedby="paused-means"
            onChange={(event) => void change(event.currentTarget)}
          />{" "}
          Paused
        </label>
        <span id="paused-means">
          While it is paused this browser refuses every command. What has begun is finished, and the server still sees
          which tabs are open.
        </span>
      </p>
      {problem !== "" && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </>
  );
};
