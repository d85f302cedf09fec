/** Elements that several parts of the panel use. */
import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { pieces, short } from "./text.js";

/** Text that somebody else chose: characters that cannot be seen are escapes, and its direction stays its own. */
export const Shown: FunctionComponent<{ readonly text: string }> = ({ text }) => (
  <>
    {pieces(text).map((piece, at) =>
      piece.escape ? (
        <span key={at} class="unseen" title="a character that cannot be seen">
          {piece.text}
        </span>
      ) : (
        piece.text
      ),
    )}
  </>
);

/** The same inside other text: a title cannot turn round what stands beside it. */
export const Foreign: FunctionComponent<{ readonly text: string; readonly most?: number }> = ({ text, most }) => (
  <bdi>
    <Shown text={most === undefined ? text : short(text, most)} />
  </bdi>
);

const aboutHandles =
  "The handle of a conversation: the shortest beginning of its id that fits no other open one. The command line and agents that may " +
  "write to others find it by that; it changes when another conversation begins alike.";

/** The handle of a conversation, with what that is. */
export const Handle: FunctionComponent<{ readonly handle: string }> = ({ handle }) =>
  handle === "" ? null : (
    <code class="handle" title={aboutHandles}>
      <Shown text={short(handle, 40)} />
    </code>
  );

/** For screen readers only. */
export const Spoken: FunctionComponent<{ readonly children: ComponentChildren }> = ({ children }) => (
  <span class="spoken">{children}</span>
);

export type Sign =
  | "done"
  | "running"
  | "waiting"
  | "failed"
  | "denied"
  | "stopped"
  | "on"
  | "off"
  | "paused"
  | "trying";

/** Shapes that differ without colour. */
const paths: Record<Sign, string> = {
  done: "M3 8.5 6.5 12 13 4.5",
  running: "M8 2.5a5.5 5.5 0 1 1-5.5 5.5",
  waiting: "M8 3v6M8 12.4v.2",
  failed: "M4 4l8 8M12 4l-8 8",
  denied: "M8 2.5a5.5 5.5 0 1 0 .01 0M4.2 11.8l7.6-7.6",
  stopped: "M4.5 4.5h7v7h-7z",
  on: "M8 4.5a3.5 3.5 0 1 0 .01 0",
  off: "M8 3.5a4.5 4.5 0 1 0 .01 0",
  paused: "M6 4v8M10 4v8",
  trying: "M8 3.5a4.5 4.5 0 0 1 4.5 4.5M8 12.5A4.5 4.5 0 0 1 3.5 8",
};

export const Glyph: FunctionComponent<{ readonly sign: Sign }> = ({ sign }) => (
  <svg class="glyph" data-sign={sign} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d={paths[sign]} />
  </svg>
);

type IconName = "new" | "settings" | "latest" | "more" | "close" | "inbox" | "edit" | "archive" | "reopen";

const icons: Record<IconName, string> = {
  new: "M8 3v10M3 8h10",
  settings: "M3 4.5h4M11 4.5h2M9 2.8v3.4M3 11.5h2M9 11.5h4M7 9.8v3.4",
  latest: "M8 3v9M4 8.5 8 12.5 12 8.5",
  more: "M4.5 6.5 8 10l3.5-3.5",
  inbox: "M2.5 9.5v3h11v-3M2.5 9.5 4.5 3.5h7l2 6M2.5 9.5h3.5c0 1.2 1 1.7 2 1.7s2-.5 2-1.7h3.5",
  close: "M4 4l8 8M12 4l-8 8",
  edit: "M3 13l.8-3L10.5 3.3l2.2 2.2L6 12.2z",
  archive: "M2.5 3.5h11v3h-11zM3.5 6.5v6h9v-6M6.5 9h3",
  reopen: "M2.5 3.5h11v3h-11zM3.5 6.5v6h9v-6M8 12V8.5M6.5 10 8 8.5 9.5 10",
};

export const Icon: FunctionComponent<{ readonly name: IconName }> = ({ name }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d={icons[name]} />
  </svg>
);

/** Something that says when it changes. */
interface Source<S> {
  readonly state: S;
  subscribe(listener: () => void): () => void;
}

const hiddenMs = 100;

/**
 * The state of a source, drawn at most once a frame however fast it changes. What a person did is drawn at once: what they type
 * next must not go into a field that the next frame takes away. `turned` tells such a change; it must stay the same function.
 */
export function useSource<S>(source: Source<S>, turned?: (drawn: S, now: S) => boolean): S {
  const [state, setState] = useState(source.state);
  useEffect(() => {
    let due = false;
    let over = false;
    let drawn = source.state;
    const draw = () => {
      due = false;
      if (!over) {
        drawn = source.state;
        setState(drawn);
      }
    };
    const leave = source.subscribe(() => {
      if (turned?.(drawn, source.state)) {
        draw();
      } else if (!due) {
        due = true;
        // A page that nobody sees has no frames.
        document.hidden ? setTimeout(draw, hiddenMs) : requestAnimationFrame(draw);
      }
    });
    // It may have changed since it was drawn; and the frame that was asked for does not come while nobody sees the page.
    draw();
    document.addEventListener("visibilitychange", draw);
    return () => {
      over = true;
      leave();
      document.removeEventListener("visibilitychange", draw);
    };
  }, [source, turned]);
  return state;
}

/** Milliseconds since 1970, again and again. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
