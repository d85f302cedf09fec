/** The settings page: pairing, and the token for the chat. */
import { type ComponentChildren, type FunctionComponent, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { LinkStatus } from "../bridge/messages.js";
import { operatorKey, pairingKey, readOperatorToken, readPairing, writeText } from "../bridge/settings.js";
import { askStatus, watchStatus } from "../bridge/status.js";
import type { MessagePort, StoragePort } from "../platform/port.js";
import { Connection } from "./connection.js";
import { type PairInput, type PairOutcome, type PairParts, pair } from "./pair.js";
import { PrivateWindows } from "./private.js";

export interface SettingsParts extends PairParts {
  readonly storage: StoragePort;
  readonly messages: MessagePort;
  readonly seesPrivate: () => Promise<boolean>;
}

const defaultServer = "http://127.0.0.1:3913";

export async function showSettings(root: Element, parts: SettingsParts): Promise<void> {
  const [pairing, operator, about, status] = await Promise.all([
    readPairing(parts.storage.local),
    readOperatorToken(parts.storage.local),
    parts.about(),
    askStatus(parts.messages),
  ]);
  const first = {
    server: pairing?.server ?? defaultServer,
    name: pairing?.name ?? `${about.agent.replace(/ [0-9.]+$/, "")} on ${about.platform}`,
    operator,
    status,
  };
  render(<Settings parts={parts} first={first} />, root);
}

interface First {
  readonly server: string;
  readonly name: string;
  readonly operator: string;
  readonly status: LinkStatus | undefined;
}

const Settings: FunctionComponent<{ readonly parts: SettingsParts; readonly first: First }> = ({ parts, first }) => {
  const [status, setStatus] = useState(first.status);
  useEffect(() => {
    const stop = watchStatus(parts.messages, setStatus);
    // It may have changed since it was drawn.
    void askStatus(parts.messages).then((now) => now && setStatus(now));
    return stop;
  }, [parts]);
  return (
    <>
      <h1>Throwbar</h1>
      <Connection status={status} messages={parts.messages} />
      <PairingForm parts={parts} first={first} />
      <PrivateWindows local={parts.storage.local} seesPrivate={parts.seesPrivate} />
      <OperatorForm parts={parts} token={first.operator} />
    </>
  );
};

const Field: FunctionComponent<{
  readonly name: string;
  readonly label: string;
  readonly children: ComponentChildren;
}> = (props) => (
  <p>
    <label for={props.name}>{props.label}</label>
    {props.children}
  </p>
);

const PairingForm: FunctionComponent<{ readonly parts: SettingsParts; readonly first: First }> = ({ parts, first }) => {
  const [outcome, setOutcome] = useState<PairOutcome>();
  const [busy, setBusy] = useState(false);
  const submit = async (form: HTMLFormElement) => {
    setBusy(true);
    const made = await pair(readForm(form), parts);
    if (made.ok) {
      await parts.storage.local.set({ [pairingKey]: made.pairing });
      // Used up; server and name stay for the next time.
      form.querySelectorAll<HTMLInputElement>("[name=code]").forEach((field) => {
        field.value = "";
      });
    }
    setOutcome(made);
    setBusy(false);
  };
  return (
    <section aria-labelledby="pair">
      <h2 id="pair">Pair this browser</h2>
      <p>
        Make a code with <code>throwbar pair</code> and type it here. The token that this browser gets for it is good
        for its own connection and nothing else.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <Field name="server" label="Server">
          <input id="server" name="server" defaultValue={first.server} required spellcheck={false} />
        </Field>
        <Field name="code" label="Pairing code">
          <input id="code" name="code" required autocomplete="off" spellcheck={false} />
        </Field>
        <Field name="name" label="Name of this browser">
          <input id="name" name="name" defaultValue={first.name} required maxLength={64} />
        </Field>
        <button id="pair-button" type="submit" disabled={busy}>
          Pair
        </button>
      </form>
      <PairResult outcome={outcome} />
    </section>
  );
};

function readForm(form: HTMLFormElement): PairInput {
  const data = new FormData(form);
  const text = (name: string) => String(data.get(name) ?? "");
  return { server: text("server"), code: text("code"), name: text("name") };
}

const PairResult: FunctionComponent<{ readonly outcome: PairOutcome | undefined }> = ({ outcome }) => (
  <div role="status" id="pair-result" data-ok={outcome?.ok ?? ""}>
    {outcome?.ok === false && <p class="problem">{outcome.text}</p>}
    {outcome?.ok === true && (
      <p>
        Paired as {outcome.pairing.name}. The check word is <strong id="check-word">{outcome.checkWord}</strong>: it has
        to be the one that was shown with the code. If it is not, revoke this device.
      </p>
    )}
  </div>
);

const OperatorForm: FunctionComponent<{ readonly parts: SettingsParts; readonly token: string }> = ({
  parts,
  token,
}) => {
  const [saved, setSaved] = useState("");
  const save = async (form: HTMLFormElement) => {
    const value = String(new FormData(form).get("operator") ?? "").trim();
    await writeText(parts.storage.local, operatorKey, value);
    setSaved(value === "" ? "Forgotten." : "Saved in this browser.");
  };
  return (
    <section aria-labelledby="chat">
      <h2 id="chat">Chat in the side panel</h2>
      <p>
        The token from pairing cannot talk to the agent or send commands. For the chat the panel needs a token of yours
        with the scope operator: make one with <code>throwbar token create --name "side panel" --scope operator</code>{" "}
        and paste it here, once. It is stored in this browser profile and sent to your server only.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save(event.currentTarget);
        }}
      >
        <Field name="operator" label="Operator token">
          <input id="operator" name="operator" type="password" defaultValue={token} autocomplete="off" />
        </Field>
        <button id="operator-button" type="submit">
          Save
        </button>
      </form>
      <p role="status" id="operator-result">
        {saved}
      </p>
    </section>
  );
};
