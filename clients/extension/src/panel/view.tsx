/** The side panel. */
import { type FunctionComponent, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Announcer } from "./announce.js";
import type { Approval } from "./approvals.js";
import type { Chat, ChatState } from "./chat.js";
import { Compose } from "./compose.js";
import type { Remedy } from "./connection.js";
import { ConnectionDetails, ConnectionNews, Head, type SheetName } from "./head.js";
import type { Inbox } from "./inbox.js";
import { Lines } from "./lines.js";
import { callTitle } from "./plan.js";
import { Sheet } from "./sheet.js";
import { Shown, useSource } from "./shown.js";
import { Switcher } from "./switcher.js";
import { visible } from "./text.js";
import { Waiting } from "./waiting.js";

export interface PanelParts {
  readonly chat: Chat;
  readonly inbox: Inbox;
  readonly openSettings: () => Promise<void>;
  /** Connects this browser anew, now. */
  readonly reconnect: () => Promise<void>;
  readonly pause: (paused: boolean) => Promise<void>;
}

export function showPanel(root: Element, parts: PanelParts): void {
  render(<Panel {...parts} />, root);
}

const titles: Record<SheetName, string> = {
  conversations: "Conversations",
  waiting: "Waiting for you",
  connection: "This browser's connection",
};

/** Another view is another field to write in. */
const turned = (drawn: ChatState, now: ChatState) => drawn.view !== now.view;

const Panel: FunctionComponent<PanelParts> = (parts) => {
  const { chat, inbox } = parts;
  const state = useSource(chat, turned);
  const { pending } = useSource(inbox);
  const [open, setOpen] = useState<SheetName>();
  useEffect(() => {
    if (open === "conversations") {
      void chat.refresh();
    }
  }, [chat, open]);
  const close = () => setOpen(undefined);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape") {
        close();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const go = (work: Promise<void>) => {
    close();
    void work;
  };
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("message")?.focus()}>
        Go to the message field
      </button>
      <Head
        state={state}
        waiting={pending.length}
        open={open}
        onSheet={(sheet) => setOpen(sheet === open ? undefined : sheet)}
        onNew={() => go(chat.begin())}
        onSettings={() => void parts.openSettings()}
      />
      <main>
        <Lines lines={state.thread.lines} running={state.thread.running} view={state.view} chat={chat} inbox={inbox} />
        {open !== undefined && (
          <Sheet key={open} id={`${open}-sheet`} title={titles[open]} onClose={close}>
            {open === "connection" && (
              <ConnectionDetails link={state.link} onPause={parts.pause} onRemedy={(remedy) => mend(remedy, parts)} />
            )}
            {open === "conversations" && (
              <Switcher
                chat={chat}
                state={state}
                waiting={new Set(pending.map(({ conversationId }) => conversationId))}
                onShow={(id) => go(chat.show(id))}
                onNew={() => go(chat.begin())}
              />
            )}
            {open === "waiting" && (
              <Waiting
                inbox={inbox}
                conversations={state.conversations ?? []}
                current={state.thread.conversationId}
                onShow={(id) => go(chat.show(id))}
              />
            )}
          </Sheet>
        )}
      </main>
      <Obstacle state={state} chat={chat} openSettings={parts.openSettings} />
      <Compose key={state.view} state={state} chat={chat} />
      <News state={state} pending={pending} />
      <ConnectionNews link={state.link} />
    </>
  );
};

async function mend(remedy: Remedy, parts: PanelParts): Promise<void> {
  switch (remedy) {
    case "settings":
      return parts.openSettings();
    case "resume":
      return parts.pause(false);
    case "reconnect":
      return parts.reconnect();
  }
}

const obstacles: Record<Exclude<ChatState["ready"], "ready">, string> = {
  unpaired: "This browser is not paired with a server yet.",
  tokenless: "The chat needs an operator token: the token from pairing is good for this browser's own connection only.",
};

interface ObstacleProps {
  readonly state: ChatState;
  readonly chat: Chat;
  readonly openSettings: () => Promise<void>;
}

/** The one line that says why there is nothing to chat with, and the button that helps. */
const Obstacle: FunctionComponent<ObstacleProps> = ({ state, chat, openSettings }) => {
  if (state.ready !== "ready") {
    return (
      <p class="problem">
        <span id="obstacle">{obstacles[state.ready]}</span>{" "}
        <button type="button" onClick={() => void openSettings()}>
          Open settings
        </button>
      </p>
    );
  }
  const text = state.problem || (state.model?.name === "" ? state.model.hint : "");
  return text === "" ? null : (
    <p class="problem">
      <span id="obstacle" role="alert">
        <Shown text={text} />
      </span>
      {state.problem !== "" && (
        <>
          {" "}
          <button type="button" onClick={() => (state.refused ? void openSettings() : chat.retry())}>
            {state.refused ? "Open settings" : "Try again"}
          </button>
        </>
      )}
    </p>
  );
};

const maxSaid = 20;

interface NewsProps {
  readonly state: ChatState;
  readonly pending: readonly Approval[];
}

/** What a screen reader is told of the conversation, and of what is asked elsewhere. */
const News: FunctionComponent<NewsProps> = ({ state: { thread, loading, view }, pending }) => {
  const announcer = useRef<Announcer>(undefined);
  announcer.current ??= new Announcer();
  const [polite, setPolite] = useState<readonly (readonly [number, string])[]>([]);
  const [urgent, setUrgent] = useState("");
  const shown = useRef({ view, loading });
  const count = useRef(0);
  useEffect(() => {
    const before = shown.current;
    shown.current = { view, loading };
    if (loading || before.loading || before.view !== view) {
      announcer.current?.skip(thread);
      return;
    }
    const news = announcer.current?.next(thread);
    if (news !== undefined && news.polite.length > 0) {
      const fresh = news.polite.map((text) => [count.current++, text] as const);
      setPolite((all) => [...all, ...fresh].slice(-maxSaid));
    }
    if (news !== undefined && news.assertive.length > 0) {
      setUrgent(news.assertive.join(" "));
    }
  }, [thread, loading, view]);
  const asked = useRef<ReadonlySet<string>>(new Set());
  useEffect(() => {
    // The conversation's own are said with its lines.
    const others = pending.filter(
      ({ conversationId }) => conversationId !== thread.conversationId || conversationId === "",
    );
    const [fresh] = others.filter(({ approvalId }) => !asked.current.has(approvalId));
    asked.current = new Set(pending.map(({ approvalId }) => approvalId));
    if (fresh !== undefined) {
      const [call] = fresh.calls;
      setUrgent(`${call === undefined ? "Something" : visible(callTitle(call))} waits for you: asked elsewhere.`);
    }
  }, [pending]);
  return (
    <>
      <div id="news" class="spoken" role="status" aria-live="polite" aria-atomic="false">
        {polite.map(([key, text]) => (
          <p key={key}>{text}</p>
        ))}
      </div>
      <div id="urgent" class="spoken" role="alert" aria-live="assertive">
        {urgent}
      </div>
    </>
  );
};
