/** All conversations: which one runs, which one waits for the person, and the way to another one. */
import type { FunctionComponent, TargetedKeyboardEvent } from "preact";
import { useState } from "preact/hooks";
import type { Conversation } from "./agent.js";
import { Foreign, Glyph, type Sign, useNow } from "./shown.js";
import { ago } from "./words.js";

export interface SwitcherProps {
  /** Undefined before the first answer. */
  readonly conversations: readonly Conversation[] | undefined;
  readonly current: string;
  /** Ids of conversations in which something waits for the person. */
  readonly waiting: ReadonlySet<string>;
  readonly onShow: (id: string) => void;
  readonly onNew: () => void;
}

type State = "waiting" | "running" | "idle";

const signs: Record<State, Sign> = { waiting: "waiting", running: "running", idle: "done" };
const words: Record<State, string> = { waiting: "waits for you", running: "running", idle: "idle" };

export const Switcher: FunctionComponent<SwitcherProps> = ({ conversations, current, waiting, onShow, onNew }) => {
  const [wanted, setWanted] = useState("");
  const now = useNow(30_000);
  const needle = wanted.trim().toLowerCase();
  const fits = ({ title, id }: Conversation) => title.toLowerCase().includes(needle) || id.startsWith(needle);
  const shown = conversations?.filter(fits);
  return (
    <nav class="switcher" aria-label="Conversations" onKeyDown={walk}>
      <p class="find">
        <input
          id="find-conversation"
          type="search"
          aria-label="Find a conversation by title or handle"
          placeholder="Find by title or handle"
          data-first
          spellcheck={false}
          value={wanted}
          onInput={({ currentTarget }) => setWanted(currentTarget.value)}
          onKeyDown={(event) => {
            const [first] = shown ?? [];
            if (event.key === "Enter" && first !== undefined && needle !== "") {
              onShow(first.id);
            }
          }}
        />
        <button type="button" onClick={onNew}>
          New
        </button>
      </p>
      {shown === undefined && <p>Not read yet.</p>}
      {shown?.length === 0 && <p>{needle === "" ? "There is no conversation yet." : "None of them fits."}</p>}
      <ul>
        {shown?.map((each) => (
          <li key={each.id}>
            <Row
              conversation={each}
              current={each.id === current}
              waits={waiting.has(each.id)}
              now={now}
              onShow={onShow}
            />
          </li>
        ))}
      </ul>
    </nav>
  );
};

interface RowProps {
  readonly conversation: Conversation;
  readonly current: boolean;
  readonly waits: boolean;
  readonly now: number;
  readonly onShow: (id: string) => void;
}

const Row: FunctionComponent<RowProps> = ({ conversation, current, waits, now, onShow }) => {
  const { id, handle, title, running, updatedAt } = conversation;
  const state: State = waits ? "waiting" : running ? "running" : "idle";
  return (
    <button
      type="button"
      class="conversation"
      data-id={id}
      data-state={state}
      aria-current={current ? "true" : undefined}
      onClick={() => onShow(id)}
    >
      <Glyph sign={signs[state]} />
      <span class="title">{title === "" ? "Without a title" : <Foreign text={title} most={80} />}</span>
      <small>
        {handle !== "" && <code>{handle}</code>} {words[state]}, {ago((now - updatedAt) / 1000)}
      </small>
    </button>
  );
};

/** Arrow keys go through the rows, from the field and back to it; Home and End to the first and last. */
function walk(event: TargetedKeyboardEvent<HTMLElement>): void {
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>(".conversation")];
  const field = event.currentTarget.querySelector<HTMLElement>("input");
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const typing = document.activeElement === field;
  const to: Record<string, HTMLElement | null | undefined> = {
    ArrowDown: rows[Math.min(at + 1, rows.length - 1)],
    ArrowUp: at > 0 ? rows[at - 1] : field,
    ...(typing ? {} : { Home: rows[0], End: rows.at(-1) }),
  };
  const target = to[event.key];
  if (target !== undefined) {
    event.preventDefault();
    target?.focus();
  }
}
