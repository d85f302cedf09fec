/** All conversations: which one runs, which one waits for the person, and the way to another one. */
import type { FunctionComponent, TargetedKeyboardEvent } from "preact";
import { useState } from "preact/hooks";
import type { Conversation, Status } from "./agent.js";
import type { Chat, ChatState } from "./chat.js";
import { Foreign, Glyph, Handle, Icon, type Sign, useNow } from "./shown.js";
import { short } from "./text.js";
import { ago, counted, statusWords } from "./words.js";

export interface SwitcherProps {
  readonly chat: Chat;
  readonly state: ChatState;
  /** Ids of conversations in which something waits for the person. */
  readonly waiting: ReadonlySet<string>;
  readonly onShow: (id: string) => void;
  readonly onNew: () => void;
}

const signs: Record<Status, Sign> = { waiting: "waiting", running: "running", idle: "done", failed: "failed" };

export const Switcher: FunctionComponent<SwitcherProps> = ({ chat, state, waiting, onShow, onNew }) => {
  const [wanted, setWanted] = useState("");
  const now = useNow(30_000);
  const needle = wanted.trim().toLowerCase();
  const fits = ({ title, id, agent }: Conversation) =>
    title.toLowerCase().includes(needle) || agent.toLowerCase().includes(needle) || id.startsWith(needle);
  const { conversations, archived, thread } = state;
  const shown = conversations === undefined ? undefined : inFamilies(conversations.filter(fits));
  const row = (each: Member, isArchived: boolean) => (
    <li key={each.conversation.id} data-depth={each.depth} style={{ "--depth": each.depth }}>
      <Row
        chat={chat}
        conversation={each.conversation}
        current={each.conversation.id === thread.conversationId}
        waits={waiting.has(each.conversation.id)}
        archived={isArchived}
        now={now}
        onShow={onShow}
      />
    </li>
  );
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
              onShow(first.conversation.id);
            }
          }}
        />
        <button type="button" onClick={onNew}>
          New
        </button>
      </p>
      {shown === undefined && <p>Not read yet.</p>}
      {shown?.length === 0 && <p>{needle === "" ? "There is no conversation yet." : "None of them fits."}</p>}
      <ul>{shown?.map((each) => row(each, false))}</ul>
      <p>
        <button
          type="button"
          id="archived"
          class="quiet"
          aria-expanded={archived !== undefined}
          onClick={() => void chat.showArchived(archived === undefined)}
        >
          {archived === undefined ? "Show the archived ones" : "Hide the archived ones"}
        </button>
      </p>
      {archived?.length === 0 && <p>None is archived.</p>}
      <ul>{archived?.filter(fits).map((conversation) => row({ conversation, depth: 0 }, true))}</ul>
    </nav>
  );
};

interface Member {
  readonly conversation: Conversation;
  /** How deep it is under the one that a person began. */
  readonly depth: number;
}

const mostDepth = 8;

/** Each conversation under the one whose agent has started it, if that is in the list. */
export function inFamilies(list: readonly Conversation[]): Member[] {
  const ids = new Set(list.map(({ id }) => id));
  const under = new Map<string, Conversation[]>();
  for (const each of list) {
    const parent = ids.has(each.parentId) ? each.parentId : "";
    under.set(parent, [...(under.get(parent) ?? []), each]);
  }
  const rows = (parent: string, depth: number): Member[] =>
    depth > mostDepth
      ? []
      : (under.get(parent) ?? []).flatMap((conversation) => [
          { conversation, depth },
          ...rows(conversation.id, depth + 1),
        ]);
  return rows("", 0);
}

interface RowProps {
  readonly chat: Chat;
  readonly conversation: Conversation;
  readonly current: boolean;
  readonly waits: boolean;
  readonly archived: boolean;
  readonly now: number;
  readonly onShow: (id: string) => void;
}

const Row: FunctionComponent<RowProps> = ({ chat, conversation, current, waits, archived, now, onShow }) => {
  const { id, handle, title, status, updatedAt, agent, queued } = conversation;
  const [renaming, setRenaming] = useState<string>();
  const state: Status = waits ? "waiting" : status;
  const name = title === "" ? "Without a title" : title;
  if (renaming !== undefined) {
    return (
      <form
        class="rename"
        onSubmit={(event) => {
          event.preventDefault();
          setRenaming(undefined);
          void chat.rename(id, renaming.trim());
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            setRenaming(undefined);
          }
        }}
      >
        <input
          aria-label={`New title of ${short(name, 60)}`}
          maxLength={200}
          ref={(field) => field?.focus()}
          value={renaming}
          onInput={({ currentTarget }) => setRenaming(currentTarget.value)}
        />
        <button type="submit" disabled={renaming.trim() === ""}>
          Save
        </button>
      </form>
    );
  }
  return (
    <div class="entry">
      <button
        type="button"
        class="conversation"
        data-id={id}
        data-state={state}
        aria-current={current ? "true" : undefined}
        onClick={() => onShow(id)}
      >
        <Glyph sign={archived ? "stopped" : signs[state]} />
        <span class="title">
          <Foreign text={name} most={80} />
        </span>
        <small>
          <Handle handle={handle} />{" "}
          {agent !== "" && (
            <>
              agent <Foreign text={agent} most={40} />
              {", "}
            </>
          )}
          {archived ? "archived" : waits ? "waits for you" : statusWords[state]}
          {queued > 0 && `, ${counted(queued, "message")} waiting`}, {ago((now - updatedAt) / 1000)}
        </small>
      </button>
      {archived ? (
        <Act icon="reopen" text="Open again" name={name} onClick={() => void chat.reopen(id)} />
      ) : (
        <>
          <Act icon="edit" text="Rename" name={name} onClick={() => setRenaming(title)} />
          <Act icon="archive" text="Archive" name={name} onClick={() => void chat.archive(id)} />
        </>
      )}
    </div>
  );
};

interface ActProps {
  readonly icon: "edit" | "archive" | "reopen";
  readonly text: string;
  readonly name: string;
  readonly onClick: () => void;
}

const Act: FunctionComponent<ActProps> = ({ icon, text, name, onClick }) => (
  <button type="button" class="icon-button" aria-label={`${text}: ${short(name, 60)}`} title={text} onClick={onClick}>
    <Icon name={icon} />
  </button>
);

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
