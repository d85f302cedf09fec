/** The head of the panel: which conversation, what waits, and how this browser is connected. Its height never changes. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { LinkStatus } from "../bridge/messages.js";
import type { ChatState } from "./chat.js";
import { type Connection, connection, type Remedy, remedyTexts } from "./connection.js";
import { Foreign, Glyph, Handle, Icon, useNow } from "./shown.js";
import { short } from "./text.js";
import { ago } from "./words.js";

export type SheetName = "conversations" | "waiting" | "connection";

interface HeadProps {
  readonly state: ChatState;
  readonly waiting: number;
  readonly open: SheetName | undefined;
  readonly onSheet: (sheet: SheetName) => void;
  readonly onNew: () => void;
  readonly onSettings: () => void;
}

export const Head: FunctionComponent<HeadProps> = ({ state, waiting, open, onSheet, onNew, onSettings }) => {
  const { conversationId } = state.thread;
  const row = state.conversations?.find(({ id }) => id === conversationId);
  const parent = state.conversations?.find(({ id }) => id === row?.parentId);
  const title = row?.title || (conversationId === "" ? "New conversation" : "Conversation");
  const handle = row?.handle ?? "";
  const sheet = (name: SheetName) => ({
    "aria-expanded": open === name,
    "aria-haspopup": "dialog" as const,
    onClick: () => onSheet(name),
  });
  return (
    <header class="head">
      <div class="row">
        <button
          type="button"
          id="conversations"
          class="which"
          aria-label={`Conversation: ${short(title, 60)} ${handle}${parent === undefined ? "" : `, started by ${parent.handle}`}`}
          {...sheet("conversations")}
        >
          <span class="title">
            <Foreign text={title} most={80} />
          </span>
          <Handle handle={handle} />
          <Icon name="more" />
        </button>
        <button
          type="button"
          id="waiting"
          class="count"
          data-count={waiting}
          aria-label={`${waiting} waiting for you`}
          {...sheet("waiting")}
        >
          <Icon name="inbox" />
          {waiting}
        </button>
        <button
          type="button"
          id="new"
          class="icon-button"
          aria-label="New conversation"
          title="New conversation"
          onClick={onNew}
        >
          <Icon name="new" />
        </button>
        <button
          type="button"
          id="settings"
          class="icon-button"
          aria-label="Settings"
          title="Settings"
          onClick={onSettings}
        >
          <Icon name="settings" />
        </button>
      </div>
      <div class="row">
        <Chip link={state.link} sheet={sheet("connection")} />
        <span class="model" title={state.model?.name}>
          {state.model?.name}
        </span>
      </div>
    </header>
  );
};

interface ChipProps {
  readonly link: LinkStatus | undefined;
  readonly sheet: object;
}

const Chip: FunctionComponent<ChipProps> = ({ link, sheet }) => {
  const { sign, text } = connection(link, useTicking(link));
  const ms = link?.state === "online" ? link.roundTripMs : undefined;
  return (
    <button
      type="button"
      id="state"
      class="chip"
      data-state={link?.state ?? "connecting"}
      data-paused={link?.paused ?? false}
      {...sheet}
    >
      <Glyph sign={sign} />
      <span class="text">{text}</span>
      {link !== undefined && link.name !== "" && (
        <span class="name">
          {" · "}
          <Foreign text={link.name} most={40} />
        </span>
      )}
      {ms !== undefined && <span class="trip"> · {Math.round(ms)} ms</span>}
    </button>
  );
};

/** The time, each second while something counts down. */
function useTicking(link: LinkStatus | undefined): number {
  return useNow(link?.retryAt === undefined ? 30_000 : 1000);
}

interface ConnectionProps {
  readonly link: LinkStatus | undefined;
  readonly onRemedy: (remedy: Remedy) => Promise<void>;
  readonly onPause: (paused: boolean) => Promise<void>;
}

/** What the sheet of the connection says. */
export const ConnectionDetails: FunctionComponent<ConnectionProps> = ({ link, onRemedy, onPause }) => {
  const now = useTicking(link);
  const said = connection(link, now);
  const [problem, setProblem] = useState("");
  const attempt = (work: Promise<void>) => {
    setProblem("");
    work.catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  };
  return (
    <div class="connection">
      <p class="now">
        <Glyph sign={said.sign} /> <strong>{said.text}</strong>
      </p>
      <Advice said={said} detail={link?.detail ?? ""} onRemedy={(remedy) => attempt(onRemedy(remedy))} />
      <dl>
        <Fact name="This browser" value={link?.name} />
        <Fact name="Server" value={link?.server} />
        <Fact
          name="Since"
          value={link === undefined || link.since === 0 ? undefined : ago((now - link.since) / 1000)}
        />
        <Fact
          name="Last round trip"
          value={link?.roundTripMs === undefined ? undefined : `${Math.round(link.roundTripMs)} ms`}
        />
      </dl>
      {link !== undefined && link.state !== "unpaired" && (
        <button
          type="button"
          id="pause"
          role="switch"
          aria-checked={link.paused}
          class="switch"
          onClick={() => attempt(onPause(!link.paused))}
        >
          <span class="track" aria-hidden="true" />
          Pause this browser
        </button>
      )}
      <p>
        <small>
          While it is paused, this browser refuses every command and says why. You can still talk to the agent.
        </small>
      </p>
      {problem !== "" && (
        <p class="trouble" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
};

const Advice: FunctionComponent<{
  readonly said: Connection;
  readonly detail: string;
  readonly onRemedy: (remedy: Remedy) => void;
}> = ({ said: { advice, remedy }, detail, onRemedy }) => (
  <>
    {(advice !== "" || detail !== "") && (
      <p>
        {advice} <Foreign text={detail} />
      </p>
    )}
    {remedy !== undefined && (
      <p>
        <button type="button" id="remedy" class="primary" onClick={() => onRemedy(remedy)}>
          {remedyTexts[remedy]}
        </button>
      </p>
    )}
  </>
);

const Fact: FunctionComponent<{ readonly name: string; readonly value: string | undefined }> = ({ name, value }) =>
  value === undefined || value === "" ? null : (
    <div>
      <dt>{name}</dt>
      <dd>
        <Foreign text={value} />
      </dd>
    </div>
  );

/** Says in words, for screen readers, when the connection becomes another one. */
export const ConnectionNews: FunctionComponent<{ readonly link: LinkStatus | undefined }> = ({ link }) => {
  const [said, setSaid] = useState("");
  const { text } = connection(link === undefined ? undefined : withoutTime(link), 0);
  useEffect(() => setSaid(text), [text]);
  return (
    <p class="spoken" role="status">
      {said === "" ? "" : `This browser: ${said}`}
    </p>
  );
};

/** What counts down is not said each second. */
function withoutTime({ retryAt: _, ...link }: LinkStatus): LinkStatus {
  return link;
}
