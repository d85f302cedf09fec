/** Lines of the conversation that are neither the person's, the answer's nor a tool's: other agents, and what one should know. */
import type { FunctionComponent } from "preact";
import type { Chat } from "./chat.js";
import { Foreign, Glyph, Handle, Shown, type Sign, useSource } from "./shown.js";
import type { ChildLine, NoticeLine, OtherLine } from "./thread.js";
import { statusWords } from "./words.js";

/** What another agent says. The mark is the server's, and nothing in the text can look like it: it stands outside of it. */
export const Other: FunctionComponent<{ readonly line: OtherLine }> = ({ line }) => (
  <section class="other" aria-label={`Message of another agent, ${line.handle}`}>
    <header>
      The agent of <Handle handle={line.handle} />
      {line.title !== "" && (
        <>
          {" "}
          <Foreign text={line.title} most={80} />
        </>
      )}
      {" writes:"}
    </header>
    <p dir="auto">
      <Shown text={line.text} />
    </p>
  </section>
);

const signs: Record<ChildLine["status"], Sign> = {
  running: "running",
  waiting: "waiting",
  idle: "done",
  failed: "failed",
};

/** An agent that this conversation has started, and what it does. */
export const Child: FunctionComponent<{ readonly line: ChildLine; readonly onShow: () => void }> = ({
  line,
  onShow,
}) => (
  <p class="child" data-status={line.status}>
    <Glyph sign={signs[line.status]} />
    <span>
      Agent <Foreign text={line.agent === "" ? "without a name" : line.agent} most={40} />{" "}
      <Handle handle={line.handle} />: {line.status === "idle" ? "has ended" : statusWords[line.status]}
    </span>
    <button type="button" class="quiet" aria-label={`Show what the agent ${line.agent} does`} onClick={onShow}>
      Show
    </button>
  </p>
);

export const Notice: FunctionComponent<{ readonly line: NoticeLine; readonly chat: Chat }> = ({ line, chat }) => (
  <p class="notice" dir="auto">
    <Shown text={line.text} />
    {line.goOn && <GoOn line={line} chat={chat} />}
  </p>
);

/** The way to go on from a limit, as long as nothing else was said after it. */
const GoOn: FunctionComponent<{ readonly line: NoticeLine; readonly chat: Chat }> = ({ line, chat }) => {
  const { thread } = useSource(chat);
  const at = thread.lines.lastIndexOf(line);
  const later = thread.lines
    .slice(at + 1)
    .some(({ kind }) => kind === "person" || kind === "agent" || kind === "other");
  return at < 0 || later || thread.running ? null : (
    <>
      {" "}
      <button type="button" class="go-on" onClick={() => void chat.send("go on")}>
        Go on
      </button>
    </>
  );
};
