/** Where the person writes. What is typed is kept until it is sent. */
import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Chat, ChatState } from "./chat.js";
import { Queue } from "./queue.js";

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
  const send = (steer = false) => {
    if (usable && text.trim() !== "") {
      change("");
      void chat.send(text, steer);
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
      <Queue queue={state.thread.queue} chat={chat} />
      <label for="message" class="spoken">
        Message
      </label>
      <textarea
        id="message"
        ref={field}
        rows={3}
        placeholder={running ? "Say something for after this turn, or steer it" : "Message the agent"}
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
        <small id="message-keys">
          {running ? "The agent is at work. Enter queues." : "Enter sends, Shift+Enter begins a line."}
        </small>
        {running ? (
          <>
            {text.trim() !== "" && (
              <>
                <button id="steer" type="button" title="It enters the turn at its next step" onClick={() => send(true)}>
                  Steer
                </button>
                <button id="queue" class="primary" type="submit" title="It waits for the end of the turn">
                  Queue
                </button>
              </>
            )}
            <button id="stop" type="button" onClick={() => void chat.stop()}>
              Stop
            </button>
          </>
        ) : (
          <button id="send" class="primary" type="submit" disabled={!usable}>
            Send
          </button>
        )}
      </p>
    </form>
  );
};
