/** What waits for the end of the turn: it can be changed and taken back until it is read. */
import type { FunctionComponent } from "preact";
import { useState } from "preact/hooks";
import type { Chat } from "./chat.js";
import { Foreign, Handle, Icon } from "./shown.js";
import { short } from "./text.js";
import type { Queued } from "./thread.js";
import { counted } from "./words.js";

export const Queue: FunctionComponent<{ readonly queue: readonly Queued[]; readonly chat: Chat }> = ({
  queue,
  chat,
}) =>
  queue.length === 0 ? null : (
    <section class="queue" aria-label="Waiting messages">
      <p>{counted(queue.length, "message")} waiting for the end of the turn:</p>
      <ol>
        {queue.map((each) => (
          <Row key={each.messageId} queued={each} chat={chat} />
        ))}
      </ol>
    </section>
  );

const Row: FunctionComponent<{ readonly queued: Queued; readonly chat: Chat }> = ({ queued, chat }) => {
  const [text, setText] = useState<string>();
  const said = short(queued.text, 40);
  if (text !== undefined) {
    return (
      <li>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void chat.editQueued(queued.messageId, text).then((done) => done && setText(undefined));
          }}
        >
          <textarea
            rows={2}
            aria-label={`Change the message “${said}”`}
            ref={(field) => field?.focus()}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
          <button type="submit" class="primary" disabled={text.trim() === ""}>
            Save
          </button>{" "}
          <button type="button" onClick={() => setText(undefined)}>
            Leave it
          </button>
        </form>
      </li>
    );
  }
  return (
    <li>
      {queued.from !== "" && <Handle handle={queued.from} />}
      <span class="text">
        <Foreign text={queued.text} most={200} />
      </span>
      {queued.from === "" && (
        <button
          type="button"
          class="icon-button"
          aria-label={`Change “${said}”`}
          title="Change"
          onClick={() => setText(queued.text)}
        >
          <Icon name="edit" />
        </button>
      )}
      <button
        type="button"
        class="icon-button"
        aria-label={`Take back “${said}”`}
        title="Take back"
        onClick={() => void chat.removeQueued(queued.messageId)}
      >
        <Icon name="close" />
      </button>
    </li>
  );
};
