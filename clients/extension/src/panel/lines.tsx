/** The conversation itself. Only what changes is drawn, and the end is followed only while the reader is there. */
import { Component, type FunctionComponent, type RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Answer } from "./answer.js";
import { ApprovalCard } from "./approval.js";
import type { Chat } from "./chat.js";
import type { Inbox } from "./inbox.js";
import { Child, Notice, Other } from "./marks.js";
import { Icon, Shown } from "./shown.js";
import { short } from "./text.js";
import type { Line } from "./thread.js";
import { Tool } from "./tool.js";

export interface LineParts {
  readonly chat: Chat;
  readonly inbox: Inbox;
}

interface LinesProps extends LineParts {
  readonly lines: readonly Line[];
  readonly running: boolean;
  /** Changes when another conversation is shown. */
  readonly view: number;
}

/** Lines that are drawn and compared together. */
const chunkSize = 32;

export const Lines: FunctionComponent<LinesProps> = ({ lines, running, view, chat, inbox }) => {
  const { box, away, toEnd } = useEnd(lines, view);
  const chunks: (readonly Line[])[] = [];
  for (let at = 0; at < lines.length; at += chunkSize) {
    chunks.push(lines.slice(at, at + chunkSize));
  }
  const last = lines.at(-1);
  const quiet = running && (last?.kind === "person" || (last?.kind === "tool" && last.outcome !== "waiting"));
  const asked = lines.some((line) => line.kind === "approval" && line.state === "pending");
  return (
    <div class="talk">
      {/* What is new is said by a region of its own, sentence by sentence. */}
      <div
        id="lines"
        class="lines"
        ref={box}
        role="log"
        aria-live="off"
        aria-label="Conversation"
        aria-busy={running}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, by keyboard too.
        tabIndex={0}
      >
        {lines.length === 0 && !running && <Greeting />}
        {chunks.map((chunk, at) => (
          <Chunk key={`${view} ${at}`} lines={chunk} parts={{ chat, inbox }} />
        ))}
        <p class="working" data-on={quiet} aria-hidden="true">
          Working…
        </p>
      </div>
      {away && (
        <button type="button" id="latest" class="latest" onClick={toEnd}>
          <Icon name="latest" /> Jump to latest{asked && ": you are asked"}
        </button>
      )}
    </div>
  );
};

const Greeting: FunctionComponent = () => (
  <div class="greeting">
    <p>Say what you want done on your devices, for example:</p>
    <ul>
      <li>Close my video tabs on my work laptop.</li>
      <li>Group the tabs about the trip, and call the group Trip.</li>
      <li>What is open on the other computer?</li>
    </ul>
  </div>
);

interface ChunkProps {
  readonly lines: readonly Line[];
  readonly parts: LineParts;
}

class Chunk extends Component<ChunkProps> {
  override shouldComponentUpdate({ lines }: ChunkProps): boolean {
    const before = this.props.lines;
    return lines.length !== before.length || lines.some((line, at) => line !== before[at]);
  }

  override render() {
    const { lines, parts } = this.props;
    // A line keeps its place: lines are only added.
    return lines.map((line, at) => <OneLine key={at} line={line} parts={parts} />);
  }
}

interface OneProps {
  readonly line: Line;
  readonly parts: LineParts;
}

class OneLine extends Component<OneProps> {
  override shouldComponentUpdate({ line }: OneProps): boolean {
    return line !== this.props.line;
  }

  override render() {
    const { line, parts } = this.props;
    switch (line.kind) {
      case "agent":
        return (
          <div class="agent">
            <Answer text={line.text} />
          </div>
        );
      case "approval":
        return (
          <ApprovalCard
            approvalId={line.approvalId}
            line={line}
            inbox={parts.inbox}
            asker={line.child === "" ? "" : `the agent ${short(line.name, 40)}, which this conversation has started`}
          />
        );
      case "tool":
        return (
          <Tool line={line} known={() => parts.chat.state.thread.known} output={() => parts.chat.output(line.callId)} />
        );
      case "other":
        return <Other line={line} />;
      case "child":
        return <Child line={line} onShow={() => void parts.chat.show(line.conversationId)} />;
      case "notice":
        return <Notice line={line} chat={parts.chat} />;
      case "reasoning":
        return (
          <details class="reasoning">
            <summary>Reasoning</summary>
            <p dir="auto">
              <Shown text={line.text} />
            </p>
          </details>
        );
      default:
        return (
          <p class={line.kind} data-sent={line.kind === "person" ? line.sent : undefined} dir="auto">
            <Shown text={line.text} />
          </p>
        );
    }
  }
}

interface End {
  readonly box: RefObject<HTMLDivElement | null>;
  /** Whether the reader has left the end. */
  readonly away: boolean;
  readonly toEnd: () => void;
}

/** Pixels from the end within which a reader who scrolls down has reached it, and one who is there still is. */
const nearPx = 24;
const onPx = 2;

const fromEnd = ({ scrollHeight, scrollTop, clientHeight }: Element) => scrollHeight - scrollTop - clientHeight;

function useEnd(lines: readonly Line[], view: number): End {
  const box = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const top = useRef(0);
  const [away, setAway] = useState(false);
  const settle = () => {
    if (following.current && box.current !== null) {
      box.current.scrollTop = box.current.scrollHeight;
      top.current = box.current.scrollTop;
    }
  };
  const toEnd = () => {
    following.current = true;
    setAway(false);
    settle();
    box.current?.focus({ preventScroll: true });
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const look = () => {
      // Whoever goes up leaves, by however little: a smooth scroll begins with a pixel, and must not be pulled back.
      const up = element.scrollTop < top.current;
      following.current = fromEnd(element) <= (up ? onPx : nearPx);
      top.current = element.scrollTop;
      setAway(!following.current);
    };
    element.addEventListener("scroll", look, { passive: true });
    // Something was unfolded: its head stays where it is, even if that leaves the end.
    element.addEventListener("toggle", look, { capture: true });
    const resized = new ResizeObserver(settle);
    resized.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      element.removeEventListener("toggle", look, { capture: true });
      resized.disconnect();
    };
  }, []);
  useLayoutEffect(() => {
    following.current = true;
    setAway(false);
    settle();
  }, [view]);
  useLayoutEffect(settle, [lines]);
  return { box, away, toEnd };
}
