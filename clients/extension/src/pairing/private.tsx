/** The choice of a person whether private windows take part. */
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { privateKey, readPrivate } from "../bridge/settings.js";
import type { StorageArea } from "../platform/port.js";

interface PrivateParts {
  readonly local: StorageArea;
  /** Whether the browser shows this extension private windows. */
  readonly seesPrivate: () => Promise<boolean>;
}

export const PrivateWindows: FunctionComponent<PrivateParts> = ({ local, seesPrivate }) => {
  const [choice, setChoice] = useState<{ readonly told: boolean; readonly seen: boolean }>();
  useEffect(() => {
    void Promise.all([readPrivate(local), seesPrivate()]).then(([told, seen]) => setChoice({ told, seen }));
  }, [local, seesPrivate]);
  const change = async (told: boolean) => {
    await (told ? local.set({ [privateKey]: true }) : local.remove([privateKey]));
    setChoice((now) => now && { ...now, told });
  };
  return (
    <section aria-labelledby="private-title">
      <h2 id="private-title">Private windows</h2>
      <p>
        <label class="choice" for="private">
          <input
            id="private"
            type="checkbox"
            checked={choice?.told === true}
            disabled={choice === undefined}
            aria-describedby="private-means"
            onChange={(event) => void change(event.currentTarget.checked)}
          />{" "}
          Private windows, too
        </label>
        <span id="private-means">
          The titles and addresses of private tabs then go to your server, and your agent can act on them. The server
          does not write them to its disk, and cannot bring back private tabs that were closed. Without this it never
          learns of them.
        </span>
      </p>
      {choice?.told === true && !choice.seen && (
        <p role="status" id="private-hidden">
          The browser does not show private windows to this extension yet: allow that in its details, on the page of
          extensions.
        </p>
      )}
    </section>
  );
};
