/** The side panel. */
import { type FunctionComponent, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { stateTexts } from "../bridge/status.js";
import { ApprovalCard } from "./approval.js";
import type { Chat, ChatState } from "./chat.js";
import type { Line, ToolLine } from "./thread.js";

export interface PanelParts {
  readonly chat: Chat;
  readonly openSettings: () => Promise<void>;
}

export function showPanel(root: Element, parts: PanelParts): void {
  render(<Panel {...parts} />, root);
}

const Panel: FunctionComponent<PanelParts> = ({ chat, openSettings }) => {
  const [state, setState] = useState(chat.state);
  useEffect(() => {
    // It may have changed since it was drawn.
    setState(chat.state);
    return chat.subscribe(() => setState(chat.state));
  }, [chat]);
  return (
    <>
      <Head state={state} chat={chat} openSettings={openSettings} />
      <Obstacle state={state} openSettings={openSettings} />
      <Lines lines={state.thread.lines} running={state.thread.running} chat={chat} />
      <Compose state={state} chat={chat} />
    </>
  );
};

const Head: FunctionComponent<{ readonly state: ChatState } & PanelParts> = ({ state, chat, openSettings }) => {
  const link = state.link?.state ?? "connecting";
  return (
    <header>
      <span id="state" role="status" data-state={link} title={state.link?.detail}>
        {stateTexts[link]}
      </span>
      <span class="model">{state.model?.name}</span>
      <button id="new" type="button" onClick={() => void chat.begin()}>
        New
      </button>
      <button id="settings" type="button" onClick={() => void openSettings()}>
        Settings
      </button>
    </header>
  );
};

const obstacles: Record<Exclude<ChatState["ready"], "ready">, string> = {
  unpaired: "This browser is not paired with a server yet.",
  tokenless: "The chat needs an operator token: the token from pairing is good for this browser's own connection only.",
};

/** The one line that says why there is nothing to chat with. */
const Obstacle: FunctionComponent<{ readonly state: ChatState; readonly openSettings: () => Promise<void> }> = ({
  state,
  openSettings,
}) => {
  if (state.ready !== "ready") {
    return (
      <p class="problem" id="obstacle">
        {obstacles[state.ready]}{" "}
        <button type="button" onClick={() => void openSettings()}>
          Open settings
        </button>
      </p>
    );
  }
  const text = state.problem || (state.model?.name === "" ? state.model.hint : "");
  return text === "" ? null : (
    <p class="problem" id="obstacle" role="alert">
      {text}
    </p>
  );
};

const Lines: FunctionComponent<{ readonly lines: readonly Line[]; readonly running: boolean; readonly chat: Chat }> = ({
  lines,
  running,
  chat,
}) => {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [lines]);
  return (
    <div id="lines" role="log" aria-busy={running}>
      {lines.map((line, at) => (
        <OneLine key={at} line={line} chat={chat} />
      ))}
      <div ref={end} />
    </div>
  );
};

const OneLine: FunctionComponent<{ readonly line: Line; readonly chat: Chat }> = ({ line, chat }) => {
  switch (line.kind) {
    case "approval":
      return <ApprovalCard line={line} chat={chat} />;
    case "tool":
      return <Tool line={line} />;
    case "reasoning":
      return (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <p>{line.text}</p>
        </details>
      );
    default:
      return <p class={line.kind}>{line.text}</p>;
  }
};

const Tool: FunctionComponent<{ readonly line: ToolLine }> = ({ line }) => (
  <details class="tool" data-name={line.name} data-outcome={line.outcome}>
    <summary>
      {line.name} <span>{line.outcome === "running" ? "…" : line.outcome}</span>
    </summary>
    <pre>{line.arguments}</pre>
    {line.repairs.length > 0 && <p>Mended: {line.repairs.join("; ")}</p>}
    {line.content !== "" && <pre>{line.content}</pre>}
  </details>
);

const Compose: FunctionComponent<{ readonly state: ChatState; readonly chat: Chat }> = ({ state, chat }) => {
  const [text, setText] = useState("");
  const { running } = state.thread;
  const usable = state.ready === "ready" && state.model !== undefined && state.model.name !== "";
  const send = () => {
    if (usable && text.trim() !== "") {
      void chat.send(text);
      setText("");
    }
  };
  return (
    <form
      class="compose"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label for="message">Message</label>
      <textarea
        id="message"
        rows={3}
        value={text}
        disabled={!usable}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            send();
          }
        }}
      />
      {running && (
        <button id="stop" type="button" onClick={() => void chat.stop()}>
          Stop
        </button>
      )}
      <button id="send" type="submit" disabled={!usable}>
        Send
      </button>
    </form>
  );
};
