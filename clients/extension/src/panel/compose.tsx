/** Where the person writes. What is typed is kept until it is sent. */
import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Chat, ChatState } from "./chat.js";

interface ComposeProps {
  readonly state: ChatState;
  readonly chat: Chat;
}

/** Made anew with each view: it begins with what was typed there before. */
export const Compose: FunctionComponent<ComposeProps> = ({ state, chat }) => {
  const [text, setText] = useState(chat.draft());
  const field = useRef<HTMLTextAreaElement>(null);
  const { running } = state.thread;
  const usable = state.ready === "ready" && state.model !== undefined && state.model.name !== "";
  useEffect(() => {
    if (state.view > 0) {
      field.current?.focus();
    }
  }, []);
  const change = (value: string) => {
    setText(value);
    chat.keepDraft(value);
  };
  const send = () => {
    if (usable && !running && text.trim() !== "") {
      change("");
      void chat.send(text);
    }
  };
  const [unsent] = running ? [] : state.thread.lines.filter((line) => line.kind === "person" && !line.sent);
  return (
    <form
      class="compose"
      aria-label="Write to the agent"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {unsent !== undefined && (
        <p class="unsent">
          Your message was not sent.{" "}
          <button type="button" id="take-back" class="quiet" onClick={() => chat.takeBack()}>
            Take it back into the field
          </button>
        </p>
      )}
      <label for="message" class="spoken">
        Message
      </label>
      <textarea
        id="message"
        ref={field}
        rows={3}
        placeholder="Message the agent"
        aria-describedby="message-keys"
        value={text}
        disabled={!usable}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            send();
          }
        }}
      />
      <p class="after">
        <small id="message-keys">{running ? "The agent is at work." : "Enter sends, Shift+Enter begins a line."}</small>
        {running ? (
          <button id="stop" type="button" onClick={() => void chat.stop()}>
            Stop
          </button>
        ) : (
          <button id="send" class="primary" type="submit" disabled={!usable}>
            Send
          </button>
        )}
      </p>
    </form>
  );
};
